"""Compaction that holds the lease: when the context filled up at a turn boundary, or because the user asked.

It runs as a frame of the thread, so that clients see it, stop ends it, a crash is swept like any other, and words that
are sent meanwhile wait for the new generation.
"""

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agent import compaction, ending, frames, opening, speaking
from agent.events import Event, emit_all
from agent.leases import Holding
from agent.models import Level, TaskFrame
from agent.refusals import Refused
from agent.summarizing import Material, summarize
from agent.summary import Summary
from maxclaw.database_threads import in_database
from threads.models import Generation, Thread
from threads.transcript import live_generation, lock_thread

_REASONS = {
    frames.RENEWAL_AT_THRESHOLD: Generation.EndReason.THRESHOLD,
    frames.RENEWAL_ASKED: Generation.EndReason.MANUAL,
    frames.RENEWAL_TO_FORGET: Generation.EndReason.FORGOTTEN,
}


def request(user: User, channel: str) -> TaskFrame:
    """Ask for a new generation: now, or at the turn boundary when a turn runs or waits. A renewal that is open answers
    a second request. Raises Refused."""
    thread = speaking.open_thread(user, channel)
    with transaction.atomic():
        thread = speaking.locked(thread)
        renewing = frames.open_renewals(thread).first()
        if renewing is not None:
            return renewing
        if not compaction.anything_said(compaction.own_rows(live_generation(thread))):
            raise Refused("nothing-to-renew", nothing_said_sentence())
        if frames.open_frames(thread).count() >= frames.STACK_MAX_DEPTH:
            raise Refused("busy", _("The conversation is busy. Try again in a moment."))
        frame = TaskFrame.objects.create(
            thread=thread,
            owner_id=thread.owner_id,
            level=Level.USER,
            source=frames.RENEWAL_ASKED,
            state=TaskFrame.State.SUSPENDED,
        )
        if thread.state == Thread.State.IDLE:
            emit_all(thread.pk, thread.owner_id, [frames.state_event(thread, frames.open_frames(thread).first())])
        # Rung while a turn runs too: its end may look at the frames as they were before this one.
        speaking.wake(thread)
    return frame


def request_forgetting(generation: Generation) -> None:
    """End a live generation at the turn boundary, because its opening says something that was to be forgotten. In the
    caller's transaction, and without the thread's lock: a turn that ends meanwhile hears the ring."""
    thread = generation.thread
    if frames.open_frames(thread).filter(source=frames.RENEWAL_TO_FORGET).exists():
        return
    TaskFrame.objects.create(
        thread=thread,
        owner_id=thread.owner_id,
        level=Level.USER,
        source=frames.RENEWAL_TO_FORGET,
        state=TaskFrame.State.SUSPENDED,
    )
    speaking.wake(thread)


async def run(holding: Holding) -> bool:
    """Renew the context under the lease and end the frame. True when the turn goes on: words wait, or a frame below
    is resumed. Raises LeaseLost, ThreadGone."""
    forgetting = holding.source == frames.RENEWAL_TO_FORGET
    material = await in_database(compaction.gather, holding.thread_id, forgetting)
    if not forgetting and not compaction.anything_said(material.rows):
        # It was rewound away since this was asked for. All that the opening holds would be summarised from nothing.
        return await in_database(_leave, holding, material.generation)
    made = await summarize(material, background=False)
    assert made is not None  # only background work may come back with nothing
    ahead = await opening.look_ahead(holding.thread_id, made.text)
    return await in_database(_commit, holding, material, made, ahead)


def _commit(holding: Holding, material: Material, made: Summary, ahead: opening.Ahead) -> bool:
    reason = _REASONS[holding.source]
    with transaction.atomic():
        thread = lock_thread(holding.thread_id, holding.token)
        done = compaction.commit(material, made, reason, holding.token, ahead)
        if done is None and holding.source == frames.RENEWAL_TO_FORGET:
            # What was to be forgotten would stay: once more.
            return True
        generation, events = done if done is not None else (live_generation(thread), [])
        notice = "" if done is not None else _("Something came in meanwhile, so the context was not renewed.")
        return _end(thread, generation, holding, notice, events)


def _leave(holding: Holding, generation: Generation) -> bool:
    with transaction.atomic():
        thread = lock_thread(holding.thread_id, holding.token)
        return _end(thread, generation, holding, nothing_said_sentence(), [])


def _end(thread: Thread, generation: Generation, holding: Holding, notice: str, events: list[Event]) -> bool:
    holding.generation_id = generation.pk
    holding.opens = generation if generation.opening is None else None
    goes_on, more = ending.end_or_go_on(thread, generation, holding, TaskFrame.EndReason.ANSWERED, notice)
    emit_all(thread.pk, thread.owner_id, [*events, *more])
    if not goes_on:
        # Words that came meanwhile wait in the inbox: whoever hears this starts their turn in the new generation.
        speaking.wake(thread)
    return goes_on


def nothing_said_sentence() -> str:
    """A generation without rows of its own is never renewed; this says so to who asked."""
    return _("Nothing was said since the context was renewed.")
