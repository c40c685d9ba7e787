"""The stack of frames of a thread: each frame is one turn, an interrupt suspends the one below it."""

from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from agent.leases import Holding
from agent.models import InboxItem, Level, TaskFrame
from agent.projection import thread_view, turn_view_of
from maxclaw import clock
from threads.models import Thread

STACK_MAX_DEPTH = 4
RENEWAL_AT_THRESHOLD, RENEWAL_ASKED = "compaction/threshold", "compaction/asked"
# The opening says something that was to be forgotten since.
RENEWAL_TO_FORGET = "compaction/forgotten"


def open_frames(thread: Thread) -> QuerySet[TaskFrame]:
    """The thread's frames that have not ended, topmost first."""
    ended = [TaskFrame.State.DONE, TaskFrame.State.FAILED]
    return TaskFrame.objects.filter(thread=thread).exclude(state__in=ended).order_by("-id")


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
    return source in (RENEWAL_AT_THRESHOLD, RENEWAL_ASKED, RENEWAL_TO_FORGET)


def begin_renewal(thread: Thread, holding: Holding) -> TaskFrame:
    """Open a frame for a context that filled up. The turn's own frame has ended; the lease stays."""
    frame = TaskFrame.objects.create(
        thread=thread, owner_id=thread.owner_id, level=Level.USER, source=RENEWAL_AT_THRESHOLD
    )
    holding.frame_id, holding.level, holding.source = frame.pk, frame.level, frame.source
    return frame


def end(frame: TaskFrame, reason: TaskFrame.EndReason, notice: str = "") -> None:
    """Close a frame for good; `notice` is the sentence that the person is shown."""
    good = reason in (TaskFrame.EndReason.ANSWERED, TaskFrame.EndReason.STOPPED)
    frame.state = TaskFrame.State.DONE if good else TaskFrame.State.FAILED
    frame.end_reason = reason
    frame.notice = notice
    frame.ended = clock.now()
    frame.save(update_fields=["state", "end_reason", "notice", "ended"])


def state_event(thread: Thread, frame: TaskFrame | None) -> tuple[str, dict[str, Any]]:
    """What clients are told when a turn begins, waits or ends."""
    return ("state", {"thread": thread_view(thread), "turn": turn_view_of(frame)})
