"""How a turn ends by itself: answered, failed, or waiting for the user."""

from django.db import transaction
from django.utils.translation import gettext as _

from agent import dispatch, frames, interruption, leases
from agent.bell import ring
from agent.events import Event
from agent.leases import Holding
from agent.models import TaskFrame
from agent.prompts import RESUMED_NOTE
from agent.safe_point import absorb, append_note, append_notice, waiting_items
from llm.calls import Prepared
from threads.lifecycle import settle
from threads.models import Generation, Thread
from threads.signals import SettledReason
from threads.transcript import lock_thread


def look_at_waiting(thread: Thread, generation: Generation, holding: Holding) -> tuple[bool, list[Event]]:
    """A safe point; `thread` was locked with `has_waiting`. Items up to the running frame's level become rows of it; a
    higher one pushes a frame, as long as the stack has room (what does not fit goes on waiting). Returns (whether
    anything came in, events)."""
    items = waiting_items(thread) if vars(thread)["has_waiting"] else []
    fitting = [item for item in items if item.level <= holding.level]
    events = absorb(thread, generation, fitting)
    higher = [item for item in items if item.level > holding.level]
    if higher and frames.open_frames(thread).count() < frames.STACK_MAX_DEPTH:
        top = max(higher, key=lambda item: item.level)
        frame = frames.push(thread, top)
        holding.frame_id, holding.level, holding.source = frame.pk, frame.level, frame.source
        events += absorb(thread, generation, [item for item in higher if item.level <= frame.level])
        events.append(frames.state_event(thread, frame))
    return bool(events or fitting), events


def end_or_go_on(
    thread: Thread,
    generation: Generation,
    holding: Holding,
    reason: TaskFrame.EndReason,
    notice: str,
    *,
    renew: bool = False,
) -> tuple[bool, list[Event]]:
    """The running frame is done. The frame below goes on if there is one (a renewal that waits is the last); else, with
    `renew`, the context is renewed under the same lease; else the lease goes back. The thread is locked. Returns
    (whether the turn goes on, events)."""
    events: list[Event] = []
    # Read with the lock; what it says of later comers may be late, but they ring.
    alone = vars(thread).get("has_suspended") is False
    standing = [] if alone else list(frames.open_frames(thread))
    frame = TaskFrame(pk=holding.frame_id, source=holding.source)
    frames.mark_ended(frame, reason, notice)
    if notice:
        events.append(append_notice(thread, generation, notice, reason))
    below = next((one for one in standing if one.state == TaskFrame.State.SUSPENDED), None)
    resumes = below is not None and not frames.is_renewal(below.source)
    if thread.kind == Thread.Kind.TASK and not resumes and not frames.is_renewal(frame.source):
        dispatch.deliver_result(thread, frame)
    if below is not None or renew:
        frame.save(update_fields=frames.ENDED_FIELDS)
    if below is not None:
        below.state = TaskFrame.State.RUNNING
        below.save(update_fields=["state"])
        if resumes:
            append_note(thread, generation, RESUMED_NOTE)
        holding.frame_id, holding.level, holding.source = below.pk, below.level, below.source
        events.append(frames.state_event(thread, below))
        return True, events
    if renew:
        events.append(frames.state_event(thread, frames.begin_renewal(thread, holding)))
        return True, events
    leases.release_after(thread, frame)
    events.append(frames.state_event(thread, None))
    good = reason == TaskFrame.EndReason.ANSWERED
    settle(thread, SettledReason.TURN_BOUNDARY if good else SettledReason.TURN_FAILED)
    return False, events


def fail(holding: Holding, reason: TaskFrame.EndReason, sentence: str) -> None:
    """End the turn with a sentence for the person. What a failed model call had said stays readable and never enters
    a prompt. Raises LeaseLost, ThreadGone."""
    with transaction.atomic():
        thread = lock_thread(holding.thread_id, holding.token)
        interrupt_and_settle(thread, reason, notice=sentence, keep_wire=False)


def interrupt_and_settle(
    thread: Thread,
    reason: TaskFrame.EndReason,
    *,
    notice: str | None = None,
    frame: TaskFrame | None = None,
    keep_wire: bool = True,
    asked: Prepared | None = None,
) -> None:
    """End a turn from outside and tell everybody concerned: who dispatched it, who listens for threads that came to
    rest, and, because words may wait or a frame below may go on, whoever runs turns. The thread is locked."""
    ended = interruption.interrupt(thread, reason, notice=notice, frame=frame, keep_wire=keep_wire, asked=asked)
    if ended is not None and thread.kind == Thread.Kind.TASK and not frames.is_renewal(ended.source):
        dispatch.deliver_result(thread, ended)
    settle(thread, SettledReason.TURN_FAILED)
    ring("wake", {"thread": thread.pk})


def wait_for_user(thread: Thread, holding: Holding) -> list[Event]:
    """Every other call of the round has its result: the turn waits for the user's, and holds no lease meanwhile."""
    frame = frames.open_frames(thread).get(pk=holding.frame_id)
    frame.state = TaskFrame.State.WAITING
    frame.save(update_fields=["state"])
    leases.release(thread, Thread.State.WAITING)
    settle(thread, SettledReason.WAITING_USER)
    return [frames.state_event(thread, frame)]


def unexpected_sentence() -> str:
    """For an exception that no rule foresaw."""
    return _("Something went wrong on the server, so this answer was not finished. It has been logged; try again.")
