"""What makes a run due: one queued for each conversation at a time, until a worker takes it.

A busy conversation keeps its trigger until the turn ends. While a question card is open it is at rest, however long its
turn still goes on: its context cannot change.
"""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django_q.tasks import async_task

from agent import prefix
from llm import catalog, router
from llm.estimates import estimate_tokens
from llm.models import ModelCall
from maxclaw import clock
from memory import backlog
from shadow import attempts, cursors
from shadow.models import ShadowRun
from threads.models import Generation, Thread

IDLE = timedelta(minutes=20)
BEFORE_EXPIRY = timedelta(seconds=180)
# Before the idle minutes are over, so that a chatty conversation is not read at every pause.
EARLY_MIN_TOKENS = 400
# Conversations at which nothing was said for so long are looked at once an hour.
RECENT = timedelta(days=2)
DUE_AT_ONCE = 1_000
# Why a queued run waits that no model may read.
NO_MODEL = "no-model"

Reason = ShadowRun.Reason

logger = logging.getLogger("maxclaw.shadow")


def trigger(thread_id: int, reason: str) -> None:
    """A conversation may have something to read: queue a run, where none is queued, and have the queue drained. After a
    turn, only what was queued while it went on."""
    thread = cursors.readable_threads().filter(pk=thread_id).only("pk", "owner_id", "state").first()
    if thread is None:
        return
    if reason == Reason.TURN_BOUNDARY:
        if ShadowRun.objects.filter(thread=thread, status=ShadowRun.Status.QUEUED).exists():
            drain_soon()
        return
    _queue([thread], reason)
    if thread.state != Thread.State.RUNNING:
        drain_soon()


def queue_idle(now: datetime, *, thorough: bool) -> int:
    """Queue what is due by itself: conversations at rest, ended ones, and ended generations. Returns how many.
    `thorough` looks at conversations of any age."""
    threads = _with_unread(now, thorough=thorough)
    generations = next_generations([thread.pk for thread in threads], now)
    asked = _asked_before(generations.values(), now - min(prefix.LIFETIMES.values()) + BEFORE_EXPIRY)
    due = [thread for thread in threads if _is_due_or_logged(thread, generations.get(thread.pk), now, asked)]
    _queue(due, Reason.IDLE_OR_ENDED)
    return len(due)


def waiting() -> QuerySet[ShadowRun]:
    """Queued runs that may be taken now, oldest first: of conversations at rest where no other run goes on, and that
    wait for no later moment."""
    going_on = ShadowRun.objects.filter(thread=OuterRef("thread"), status=ShadowRun.Status.RUNNING)
    queued = ShadowRun.objects.filter(status=ShadowRun.Status.QUEUED).exclude(thread__state=Thread.State.RUNNING)
    now = Q(not_before__isnull=True) | Q(not_before__lte=clock.now())
    return queued.filter(now, ~Exists(going_on)).order_by("pk")


def let_read(now: datetime) -> int:
    """Let queued runs go on for whose categories there is a model now, because the server started with another catalog.
    Returns how many."""
    waiting_for_one = ShadowRun.objects.filter(status=ShadowRun.Status.QUEUED, error=NO_MODEL, not_before__gt=now)
    readable = router.readable_categories(catalog.LIGHT)
    threads = cursors.readable_threads()
    if readable is not None:
        threads = threads.filter(category__in=readable)
    return waiting_for_one.filter(thread__in=threads.values("pk")).update(not_before=None, error="")


def going_on() -> int:
    """How many runs go on, in whatever process: together they are as many as one worker may run."""
    return ShadowRun.objects.filter(status=ShadowRun.Status.RUNNING).count()


def drain_soon() -> None:
    """Have a worker take what waits, once the caller's transaction is committed."""
    transaction.on_commit(partial(async_task, "shadow.tasks.drain"), robust=True)


def _queue(threads: list[Thread], reason: str) -> None:
    runs = [ShadowRun(thread=thread, owner_id=thread.owner_id, reason=reason) for thread in threads]
    # One that waits already is as good.
    ShadowRun.objects.bulk_create(runs, ignore_conflicts=True)


def _with_unread(now: datetime, *, thorough: bool) -> list[Thread]:
    generations = cursors.with_unread().filter(thread=OuterRef("pk"))
    open_runs = ShadowRun.objects.filter(
        thread=OuterRef("pk"), status__in=[ShadowRun.Status.QUEUED, ShadowRun.Status.RUNNING]
    )
    threads = cursors.readable_threads().exclude(state=Thread.State.RUNNING)
    if not thorough:
        threads = threads.filter(updated__gt=now - RECENT)
    return list(threads.filter(Exists(generations), ~Exists(open_runs)).order_by("updated", "pk")[:DUE_AT_ONCE])


def _asked_before(generations: Iterable[Generation], moment: datetime) -> set[int]:
    """Those generations that were asked something so long ago that their cache may be about to run out."""
    calls = ModelCall.objects.filter(
        generation_id__in=[one.pk for one in generations], purpose=ModelCall.Purpose.TURN, started__lte=moment
    )
    return {pk for pk in calls.values_list("generation_id", flat=True) if pk is not None}


def _is_due_or_logged(thread: Thread, generation: Generation | None, now: datetime, asked: set[int]) -> bool:
    """Whether it is due. One that cannot be looked at is not, and keeps nobody else's from being read."""
    try:
        return _is_due(thread, generation, now, asked)
    except Exception:
        logger.exception("Could not tell whether thread %s is due for its shadow.", thread.pk)
        return False


def _is_due(thread: Thread, generation: Generation | None, now: datetime, asked: set[int]) -> bool:
    if generation is None:
        return False
    if generation.ended is not None or thread.status != Thread.Status.ACTIVE or thread.updated <= now - IDLE:
        return True
    call = prefix.newest_complete(generation) if generation.pk in asked else None
    if call is None:
        return False
    expires = prefix.expires(call)
    # Once it has run out there is nothing to hurry for.
    return expires - BEFORE_EXPIRY <= now < expires and _unread_tokens(thread, generation) >= EARLY_MIN_TOKENS


def next_generations(thread_ids: list[int], now: datetime) -> dict[int, Generation]:
    """The oldest generation of each conversation that has unread rows and is not paused after failures, by thread."""
    failed = ShadowRun.objects.filter(thread__in=thread_ids, status=ShadowRun.Status.FAILED)
    doubtful = set(failed.values_list("generation", flat=True))
    found: dict[int, Generation] = {}
    unread = cursors.with_unread().filter(thread__in=thread_ids).order_by("thread", "ordinal")
    for generation in unread.defer("opening", "summary", "summary_before", "standing"):
        paused = generation.pk in doubtful and attempts.is_paused(generation.pk, now)
        if generation.thread_id not in found and not paused:
            found[generation.thread_id] = generation
    return found


def _unread_tokens(thread: Thread, generation: Generation) -> int:
    rows = cursors.unread_of(generation).values_list("pk", flat=True)[: EARLY_MIN_TOKENS * 2]
    shown = backlog.rows_of(cursors.unread_of(generation).filter(pk__in=list(rows)), thread.owner.zone)
    return sum(estimate_tokens(backlog.rendered(row)) for row in shown)
