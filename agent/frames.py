"""The stack of frames of a thread: each frame is one turn, an interrupt suspends the one below it.

A renewal of the context is a frame too. It waits below all others, whenever it was asked for: only an empty stack is a
turn boundary, and what a turn still has to answer stands in the context that the renewal would end.
"""

from typing import Any

from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q, QuerySet

from agent.leases import Holding
from agent.models import InboxItem, Level, TaskFrame
from agent.projection import View, thread_view, turn_view_of
from maxclaw import clock
from threads.models import Thread

STACK_MAX_DEPTH = 4
RENEWAL_AT_THRESHOLD, RENEWAL_ASKED = "compaction/threshold", "compaction/asked"
# The opening says something that was to be forgotten since.
RENEWAL_TO_FORGET = "compaction/forgotten"
RENEWALS = (RENEWAL_AT_THRESHOLD, RENEWAL_ASKED, RENEWAL_TO_FORGET)


def open_frames(thread: Thread) -> QuerySet[TaskFrame]:
    """The thread's frames that have not ended, topmost first; renewals that wait are the lowest."""
    renewal_waits = Q(source__in=RENEWALS, state=TaskFrame.State.SUSPENDED)
    frames = TaskFrame.objects.filter(thread=thread, owner_id=thread.owner_id, state__in=TaskFrame.OPEN_STATES)
    return frames.alias(
        lowest=ExpressionWrapper(renewal_waits, output_field=BooleanField()),
    ).order_by("lowest", "-id")


def open_renewals(thread: Thread) -> QuerySet[TaskFrame]:
    """Renewals of the thread's context that wait or run."""
    return open_frames(thread).filter(source__in=RENEWALS)


def suspended_exists() -> Exists:
    """Annotation of a thread: whether a frame of it is suspended."""
    return Exists(TaskFrame.objects.filter(thread=OuterRef("pk"), state=TaskFrame.State.SUSPENDED))


def topmost_suspended(thread: Thread) -> TaskFrame | None:
    """The frame that goes on when the one above it ends."""
    return open_frames(thread).filter(state=TaskFrame.State.SUSPENDED).first()


def push(thread: Thread, item: InboxItem) -> TaskFrame:
    """Suspend the running frame and open one of the item's higher level above it."""
    open_frames(thread).filter(state=TaskFrame.State.RUNNING).update(state=TaskFrame.State.SUSPENDED)
    return TaskFrame.objects.create(thread=thread, owner_id=thread.owner_id, level=item.level, source=item.source)


def is_renewal(source: str) -> bool:
    """Whether a frame of this source renews the context instead of answering somebody."""
    return source in RENEWALS


def begin_renewal(thread: Thread, holding: Holding) -> TaskFrame:
    """Open a frame for a context that filled up. The turn's own frame has ended; the lease stays."""
    frame = TaskFrame.objects.create(
        thread=thread, owner_id=thread.owner_id, level=Level.USER, source=RENEWAL_AT_THRESHOLD
    )
    holding.frame_id, holding.level, holding.source = frame.pk, frame.level, frame.source
    return frame


ENDED_FIELDS = ("state", "end_reason", "notice", "ended")


def end(frame: TaskFrame, reason: TaskFrame.EndReason, notice: str = "") -> None:
    """Close a frame for good; `notice` is the sentence that the person is shown."""
    mark_ended(frame, reason, notice)
    frame.save(update_fields=ENDED_FIELDS)


def mark_ended(frame: TaskFrame, reason: TaskFrame.EndReason, notice: str = "") -> None:
    """The same without writing it yet."""
    good = reason in (TaskFrame.EndReason.ANSWERED, TaskFrame.EndReason.STOPPED)
    frame.state = TaskFrame.State.DONE if good else TaskFrame.State.FAILED
    frame.end_reason = reason
    frame.notice = notice
    frame.ended = clock.now()


def state_event(thread: Thread, frame: TaskFrame | None) -> tuple[str, dict[str, Any]]:
    """What clients are told when a turn begins, waits or ends."""
    return ("state", {"thread": thread_view(thread), "turn": turn_view_of(frame)})


def turn_view(thread: Thread) -> View | None:
    """The thread's topmost open frame as clients see it."""
    return turn_view_of(open_frames(thread).first())
