"""Which page the steward reads next, who reads it, and what became of it: rows of ours, each step one transaction.

An Episode is a claim while it is `running`, one at a time for a conversation. It is committed before the model is
asked, so an attempt counts although its worker dies; it ends as done, with a Digest for every row of the page, or as
failed.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Window
from django.db.models.functions import Coalesce, RowNumber

from llm import catalog, router
from maxclaw import clock
from memory import backlog
from memory.backlog import BacklogRow, Page
from memory.fact_rows import lock_threads
from memory.models import Digest, Episode, ReadingPause
from memory.refusals import FactRefused
from threads.models import Generation, Message, Thread
from threads.transcript import ThreadGone, lock_thread

# A conversation that goes on is read when it rests, so that a chatty one is not read after every word. One that was put
# away does not go on.
QUIET = timedelta(minutes=10)
PAUSE_AFTER_FAILURES = 3
PAUSE = timedelta(hours=6)
# Longer than one page may take, so that nobody reads what somebody else still reads.
CLAIM = timedelta(minutes=15)
BEFORE_ROWS = 4
ROWS_READ = 400
NOTHING_REACHED = 0


class Lost(Exception):
    """The page is not this worker's any more, or not to be read any more: nothing of it is marked as read."""


@dataclass(frozen=True)
class Reading:
    """A page in one worker's hands. `before` are rows just before it, read already."""

    episode: Episode
    thread: Thread
    generation: Generation
    page: Page
    before: list[BacklogRow]


def readable_threads() -> QuerySet[Thread]:
    """Conversations that the steward reads: open ones that were not deleted and are not at work. Under the shadow as
    writer, main conversations alone."""
    kinds = [Thread.Kind.MAIN] if settings.MEMORY_WRITER == "shadow" else [Thread.Kind.MAIN, Thread.Kind.WEB]
    return Thread.objects.filter(kind__in=kinds, scope=Thread.Scope.OPEN, deleted__isnull=True).exclude(
        state=Thread.State.RUNNING
    )


def hold(reading: Reading) -> None:
    """Keep a page in this worker's hands until the transaction ends: its thread was neither deleted nor isolated since,
    and nothing was forgotten of which it may speak. After the owner's facts, where these are locked, as whoever forgets
    one does. Raises Lost."""
    try:
        lock_threads(reading.thread.owner_id, [reading.thread.pk])
    except FactRefused:
        raise Lost from None
    still = Thread.objects.filter(pk=reading.thread.pk, scope=Thread.Scope.OPEN, deleted__isnull=True)
    mine = Episode.objects.select_for_update().filter(pk=reading.episode.pk, outcome=Episode.Outcome.RUNNING)
    if not still.exists() or mine.first() is None:
        raise Lost


def due_threads(
    now: datetime,
    limit: int,
    *,
    thorough: bool = False,
    passed: Collection[int] = (),
    spent: Collection[int] = (),
) -> list[int]:
    """Threads that may have a page to read: each person's one that rests longest, then the next of each, and so on, so
    that nobody's many hold up another's few. Without those in `passed`, those of owners in `spent`, and of those whose
    budget was spent before; and without those whose category no light model may read, until the catalog changes.

    Looks behind what each thread's last reading reached; `thorough` looks at every row, and so finds what came to
    stand again behind it, and pages that were passed over.
    """
    reached = (
        Episode.objects.filter(thread=OuterRef("pk"), outcome=Episode.Outcome.DONE)
        .order_by()
        .values("thread")
        .annotate(reached=Max("through_seq"))
        .values("reached")
    )
    rows = _unread().filter(thread=OuterRef("pk"))
    if not thorough:
        rows = rows.filter(pk__gt=OuterRef("reached"))
    threads = readable_threads().annotate(reached=Coalesce(reached, 0)).filter(Exists(rows))
    ended = Generation.objects.filter(thread=OuterRef("pk"), ended__isnull=False)
    rests = Q(updated__lte=now - QUIET) | ~Q(status=Thread.Status.ACTIVE) | Exists(ended)
    threads = threads.filter(rests).exclude(pk__in=passed).exclude(owner__in=spent)
    threads = threads.exclude(owner__in=ReadingPause.objects.filter(until__gt=now).values("owner"))
    readable = router.readable_categories(catalog.LIGHT)
    threads = threads if readable is None else threads.filter(category__in=readable)
    place = Window(RowNumber(), partition_by="owner", order_by=["updated", "pk"])
    return list(threads.annotate(place=place).order_by("place", "updated", "pk").values_list("pk", flat=True)[:limit])


def claim(thread_id: int) -> Reading | None:
    """Take the next page of a thread: of its oldest generation that has one and is not paused. None when there is none,
    or somebody else reads the thread."""
    now = clock.now()
    try:
        with transaction.atomic():
            # Locked, so that whoever forgets what it says is done.
            threads = readable_threads().select_for_update(no_key=True, of=("self",))
            thread = threads.select_related("owner").filter(pk=thread_id).first()
            generation = None if thread is None else _next_generation(thread, now)
            if thread is None or generation is None:
                return None
            episode = Episode.objects.create(
                owner_id=thread.owner_id,
                thread=thread,
                generation=generation,
                through_seq=0,
                outcome=Episode.Outcome.RUNNING,
                created=now,
            )
            # Only now: whoever read the thread before has committed what was read.
            page = _next_page(thread, generation)
            if page is None:
                episode.delete()
                return None
            episode.through_seq = page.through
            episode.save(update_fields=["through_seq"])
            return Reading(episode, thread, generation, page, _before(thread, generation, page))
    except IntegrityError:  # somebody reads the thread, or it was erased in between
        return None


def finish(reading: Reading, call_id: int | None) -> None:
    """The page is read: one transaction. Raises Lost."""
    try:
        with transaction.atomic():
            thread = lock_thread(reading.thread.pk)
            if thread.deleted is not None or thread.scope != Thread.Scope.OPEN:
                raise Lost
            if not _close(reading.episode, Episode.Outcome.DONE, call=call_id):
                raise Lost
            standing = Message.objects.filter(pk__in=reading.page.ids, thread=thread).values_list("pk", flat=True)
            Digest.objects.bulk_create(
                Digest(message_id=pk, owner_id=thread.owner_id, episode=reading.episode) for pk in standing
            )
    except ThreadGone:
        raise Lost from None


def fail(episode: Episode, call_id: int | None) -> None:
    """The page could not be read: the attempt counts."""
    _close(episode, Episode.Outcome.FAILED, call=call_id)


def give_back(episode: Episode) -> None:
    """Nothing was asked, so nothing failed: the page waits as if it had not been taken."""
    Episode.objects.filter(pk=episode.pk, outcome=Episode.Outcome.RUNNING).delete()


def pause(owner_id: int, until: datetime) -> None:
    """Read nothing of an owner's until then: ticks come every minute, and would ask in vain at each."""
    ReadingPause.objects.update_or_create(owner_id=owner_id, defaults={"until": until})


def interrupt(thread_ids: Collection[int]) -> None:
    """Take the pages of these threads, which are locked, out of the hands of whoever reads them: nothing failed, so
    they wait as if they had not been taken."""
    Episode.objects.filter(thread__in=thread_ids, outcome=Episode.Outcome.RUNNING).delete()


def pass_over(messages: QuerySet[Message]) -> None:
    """Mark messages that nobody has read as read, unread: by an episode of each generation that reached nothing. Their
    threads are locked, and nobody is reading them."""
    rows: dict[tuple[int, int, int], list[int]] = {}
    read = Q(role__in=backlog.READ_ROLES, copied_from__isnull=True)
    unread = messages.filter(read).filter(~Exists(Digest.objects.filter(message=OuterRef("pk"))))
    for pk, *of in unread.order_by("pk").values_list("pk", "owner_id", "thread_id", "generation_id"):
        owner, thread, generation = of
        rows.setdefault((owner, thread, generation), []).append(pk)
    for (owner, thread, generation), ids in rows.items():
        episode = Episode.objects.create(
            owner_id=owner, thread_id=thread, generation_id=generation, through_seq=NOTHING_REACHED
        )
        Digest.objects.bulk_create(Digest(message_id=pk, owner_id=owner, episode=episode) for pk in ids)


def sweep(now: datetime) -> int:
    """End the claims of workers that are gone, as failed attempts. Returns how many."""
    lapsed = Episode.objects.filter(outcome=Episode.Outcome.RUNNING, created__lt=now - CLAIM)
    return lapsed.update(outcome=Episode.Outcome.FAILED)


def _unread() -> QuerySet[Message]:
    return Message.objects.filter(backlog.readable()).filter(~Exists(Digest.objects.filter(message=OuterRef("pk"))))


def _next_generation(thread: Thread, now: datetime) -> Generation | None:
    generations = Generation.objects.filter(Exists(_unread().filter(generation=OuterRef("pk"))), thread=thread)
    if thread.status == Thread.Status.ACTIVE and thread.updated > now - QUIET:
        generations = generations.filter(ended__isnull=False)
    return next((one for one in generations.order_by("ordinal") if not _paused(one, now)), None)


def _paused(generation: Generation, now: datetime) -> bool:
    """Whether the newest three attempts at a generation, or six, and so on, failed, and the pause is not over."""
    attempts = Episode.objects.filter(generation=generation).exclude(outcome=Episode.Outcome.RUNNING)
    done = attempts.filter(outcome=Episode.Outcome.DONE).aggregate(last=Max("pk"))["last"] or 0
    failed = attempts.filter(pk__gt=done).order_by("-pk")
    count = failed.count()
    return count > 0 and count % PAUSE_AFTER_FAILURES == 0 and now < failed[0].created + PAUSE


def _next_page(thread: Thread, generation: Generation) -> Page | None:
    unread = _unread().filter(generation=generation)
    ids = list(unread.order_by("pk").values_list("pk", flat=True)[:ROWS_READ])
    rows = backlog.rows_of(Message.objects.filter(pk__in=ids), thread.owner.zone)
    return next(backlog.pages(rows), None)


def _before(thread: Thread, generation: Generation, page: Page) -> list[BacklogRow]:
    rows = Message.objects.filter(backlog.readable(), generation=generation, pk__lt=page.ids[0])
    rows = rows.exclude(digest__episode__through_seq=NOTHING_REACHED)
    spoken = rows.exclude(role=Message.Role.TOOL).order_by("-pk").values_list("pk", flat=True)[:BEFORE_ROWS]
    return backlog.rows_of(Message.objects.filter(pk__in=list(spoken)), thread.owner.zone)


def _close(episode: Episode, outcome: Episode.Outcome, call: int | None) -> bool:
    running = Episode.objects.filter(pk=episode.pk, outcome=Episode.Outcome.RUNNING)
    return bool(running.update(outcome=outcome, call=call))
