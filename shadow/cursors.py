"""From where each conversation is read, and how far its runs have come.

Shadows begin once, for the whole server: the greatest message id of that moment is the watermark, and what lies below
it is not read again. Where the steward was reading, its place is taken over; from then on the two go their own ways,
for what one leaves out the other is to be compared with.
"""

from dataclasses import dataclass

from django.db import connection, transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce, Greatest

from memory import backlog
from memory.models import Digest
from shadow.models import ShadowActivation, ShadowBaseline, ShadowCursor, ShadowRun
from threads.models import Generation, Message, Thread

# Whoever begins, or adds what is missing, holds this until the transaction ends.
LOCK_KEY = 0x736861_646F77
MISSING_AT_ONCE = 1_000


@dataclass(frozen=True)
class Initialized:
    """What an initialization made."""

    activated: bool
    cursors: int
    baselines: int


@transaction.atomic
def initialize() -> Initialized:
    """Begin, once, and give each conversation and generation that has none its cursor and baseline, in one transaction.

    Two processes at once do it once: the second waits and finds it done. A message that is committed meanwhile is read
    by exactly one side, since every baseline is of ids up to the watermark and whatever is above it is unread.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
    activation = ShadowActivation.objects.first()
    activated = activation is None
    if activation is None:
        greatest = Message.objects.aggregate(greatest=Max("pk"))["greatest"] or 0
        activation = ShadowActivation.objects.create(through_seq=greatest)
    cursors = baselines = 0
    while missing := _missing_threads():
        made = _add(missing, activation.through_seq, from_steward=activated)
        cursors, baselines = cursors + made[0], baselines + made[1]
    return Initialized(activated, cursors, baselines)


def ensure(thread_id: int) -> None:
    """Give one conversation what it lacks, so that none waits for a tick to be read. Before shadows began, nothing."""
    if not ShadowActivation.objects.exists() or not _missing_threads(1, thread_id):
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])
        _add(_missing_threads(1, thread_id), ShadowActivation.objects.get().through_seq, from_steward=False)


def is_missing() -> bool:
    """Whether an initialization would make anything."""
    return not ShadowActivation.objects.exists() or bool(_missing_threads(1))


def readable_threads() -> QuerySet[Thread]:
    """Conversations that shadows read: never the main one, tasks or an isolated one, and none that is deleted."""
    return Thread.objects.filter(kind=Thread.Kind.WEB, scope=Thread.Scope.OPEN, deleted__isnull=True)


def with_unread() -> QuerySet[Generation]:
    """Generations, of whatever conversation, that have rows which no completed run has read."""
    completed = (
        ShadowRun.objects.filter(generation=OuterRef("pk"), status=ShadowRun.Status.COMPLETED)
        .order_by()
        .values("generation")
        .annotate(through=Max("through_seq"))
        .values("through")
    )
    reached = Greatest("shadow_baseline__baseline", Coalesce(Subquery(completed), Value(0)))
    rows = Message.objects.filter(backlog.readable(), generation=OuterRef("pk"), pk__gt=OuterRef("reached"))
    return Generation.objects.filter(shadow_baseline__isnull=False).alias(reached=reached).filter(Exists(rows))


def unread_of(generation: Generation) -> QuerySet[Message]:
    """The rows of one generation that no completed run has read; none where it has no baseline yet."""
    return Message.objects.filter(backlog.readable(), generation=generation, pk__gt=reached(generation))


def reached(generation: Generation) -> int:
    """Id up to which a generation counts as read: the greatest of its baseline and what completed runs reached."""
    baseline = ShadowBaseline.objects.filter(pk=generation.pk).values_list("baseline", flat=True).first()
    if baseline is None:
        return 2**63 - 1
    runs = ShadowRun.objects.filter(generation=generation, status=ShadowRun.Status.COMPLETED)
    return max(baseline, runs.aggregate(through=Max("through_seq"))["through"] or 0)


def _missing_threads(limit: int = MISSING_AT_ONCE, thread_id: int | None = None) -> list[int]:
    """Conversations (or the one, if it is) without a cursor, or with a generation that has no baseline."""
    without = Generation.objects.filter(thread=OuterRef("pk"), shadow_baseline__isnull=True)
    missing = readable_threads().filter(Q(shadow_cursor__isnull=True) | Exists(without))
    if thread_id is not None:
        missing = missing.filter(pk=thread_id)
    return list(missing.order_by("pk").values_list("pk", flat=True)[:limit])


def _held(thread_ids: list[int]) -> list[int]:
    """Those of the conversations that are still there, held until the transaction ends: whoever erases one goes first
    or waits. In the order in which erasing locks them, and leaving turns free to go on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM threads_thread WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE", [thread_ids])
        return [thread_id for (thread_id,) in cursor.fetchall()]


def _add(thread_ids: list[int], watermark: int, *, from_steward: bool) -> tuple[int, int]:
    """Cursors and baselines for these conversations, those that are there left alone. Returns how many were made."""
    thread_ids = _held(thread_ids)
    threads = Thread.objects.filter(pk__in=thread_ids)
    digested = Digest.objects.filter(message__thread__in=thread_ids).order_by()
    # By one statement, so that both speak of one moment: the steward may be at it.
    reached = list(digested.values_list("message__thread", "message__generation").annotate(last=Max("message")))
    by_generation = {generation_id: last for _thread, generation_id, last in reached}
    # The steward's place counts in the moment in which shadows begin, and never later.
    by_steward = {thread_id for thread_id, _generation, _last in reached} if from_steward else set()
    had = dict(ShadowCursor.objects.filter(pk__in=thread_ids).values_list("pk", "initialization"))
    steward, enabled = ShadowCursor.Initialization.STEWARD, ShadowCursor.Initialization.ENABLED
    cursors = [
        ShadowCursor(
            thread_id=thread.pk,
            owner_id=thread.owner_id,
            initialization=steward if thread.pk in by_steward else enabled,
        )
        for thread in threads
        if thread.pk not in had
    ]
    ShadowCursor.objects.bulk_create(cursors)
    fresh = {cursor.thread_id: cursor.initialization for cursor in cursors}
    baselines = []
    generations = Generation.objects.filter(thread__in=thread_ids, shadow_baseline__isnull=True)
    within = Message.objects.filter(generation=OuterRef("pk"), pk__lte=watermark).order_by("-pk").values("pk")[:1]
    for generation in generations.annotate(within=Subquery(within)).defer("opening", "summary", "summary_before"):
        if fresh.get(generation.thread_id) == steward:
            baseline = by_generation.get(generation.pk, 0)
        else:
            baseline = vars(generation)["within"] or 0
        baselines.append(
            ShadowBaseline(
                generation=generation, thread_id=generation.thread_id, owner_id=generation.owner_id, baseline=baseline
            )
        )
    ShadowBaseline.objects.bulk_create(baselines)
    return len(cursors), len(baselines)
