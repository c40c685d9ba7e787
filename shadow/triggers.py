"""What makes a run due: one queued for each conversation at a time, until a worker takes it.

A busy conversation keeps its trigger until the turn ends. While a question card is open it is at rest, however long its
turn still goes on: its context cannot change.
"""

from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django_q.tasks import async_task

from agent import prefix
from llm.estimates import estimate_tokens
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

Reason = ShadowRun.Reason


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
    due = [thread for thread in _with_unread(now, thorough=thorough) if _is_due(thread, now)]
    _queue(due, Reason.IDLE_OR_ENDED)
    return len(due)


def waiting() -> QuerySet[ShadowRun]:
    """Queued runs that may be taken now, oldest first: of conversations at rest where no other run goes on."""
    going_on = ShadowRun.objects.filter(thread=OuterRef("thread"), status=ShadowRun.Status.RUNNING)
    queued = ShadowRun.objects.filter(status=ShadowRun.Status.QUEUED).exclude(thread__state=Thread.State.RUNNING)
    return queued.filter(~Exists(going_on)).order_by("pk")


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


def _is_due(thread: Thread, now: datetime) -> bool:
    generation = next_generation(thread, now)
    if generation is None:
        return False
    if generation.ended is not None or thread.status != Thread.Status.ACTIVE or now >= thread.updated + IDLE:
        return True
    call = prefix.newest_complete(generation)
    if call is None:
        return False
    expires = prefix.expires(call)
    # Once it has run out there is nothing to hurry for.
    return expires - BEFORE_EXPIRY <= now < expires and _unread_tokens(thread, generation) >= EARLY_MIN_TOKENS


def next_generation(thread: Thread, now: datetime) -> Generation | None:
    """The oldest generation of a conversation that has unread rows and is not paused after failures."""
    generations = cursors.with_unread().filter(thread=thread).order_by("ordinal")
    return next((one for one in generations if not attempts.is_paused(one.pk, now)), None)


def _unread_tokens(thread: Thread, generation: Generation) -> int:
    rows = cursors.unread_of(generation).values_list("pk", flat=True)[: EARLY_MIN_TOKENS * 2]
    shown = backlog.rows_of(cursors.unread_of(generation).filter(pk__in=list(rows)), thread.owner.zone)
    return sum(estimate_tokens(backlog.rendered(row)) for row in shown)
