"""Taking a thread: who finds work, takes the lease, and puts the right frame on top."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from agent import ending, frames, leases
from agent.events import Event, emit_all
from agent.leases import Holding
from agent.models import InboxItem, Level, TaskFrame
from agent.prompts import RESUMED_NOTE
from agent.safe_point import append_note, rows_of, waiting_for
from maxclaw import clock
from threads.lifecycle import title_from
from threads.models import Thread
from threads.transcript import ThreadGone, lapsed, live_generation, lock_thread

STARTS_A_TURN_FROM_LEVEL = Level.TASK


def lapsed_threads() -> QuerySet[Thread]:
    """Threads whose holder has not renewed its lease in time."""
    return Thread.objects.filter(state=Thread.State.RUNNING, lease_until__lt=clock.now())


def ready_threads() -> QuerySet[Thread]:
    """Idle threads that some process should take: a suspended frame without a holder, or items that start a turn."""
    items = InboxItem.objects.filter(
        thread=OuterRef("pk"), state=InboxItem.State.WAITING, level__gte=STARTS_A_TURN_FROM_LEVEL
    )
    return Thread.objects.filter(
        Q(Exists(items)) | Q(frames.suspended_exists()),
        state=Thread.State.IDLE,
        status=Thread.Status.ACTIVE,
        deleted__isnull=True,
    )


def take(thread_id: int, holder: str) -> Holding | None:
    """Take the thread's lease and its topmost frame: the topmost suspended one, else a new one for what waits.

    None when there is nothing to do or somebody else holds it. A lapsed lease is swept first. All that waits becomes
    rows of a new frame, whose level is the highest among them.
    """
    with transaction.atomic():
        try:
            thread = lock_thread(thread_id, has_suspended=frames.suspended_exists())
        except ThreadGone:
            return None
        # A turn that is swept here may have stood above another.
        look_below = vars(thread)["has_suspended"] or thread.state == Thread.State.RUNNING
        if thread.state == Thread.State.RUNNING:
            if not lapsed(thread):
                return None
            ending.interrupt_and_settle(thread, TaskFrame.EndReason.INTERRUPTED)
        if thread.state == Thread.State.WAITING or thread.status != Thread.Status.ACTIVE or thread.deleted:
            return None
        frame = frames.topmost_suspended(thread) if look_below else None
        items, generation = ([], None) if frame is not None else waiting_for(thread)
        if frame is None and (not items or max(item.level for item in items) < STARTS_A_TURN_FROM_LEVEL):
            return None
        generation = generation or live_generation(thread)
        if not thread.title and thread.kind != Thread.Kind.MAIN:
            thread.title = _title(items)
        events: list[Event] = []
        fresh = frame is None
        if frame is None:
            top = max(items, key=lambda item: item.level)
            frame = TaskFrame(thread=thread, owner_id=thread.owner_id, level=top.level, source=top.source, steps=1)
            events += rows_of(thread, generation, items)
            token = leases.grant_new(thread, holder, frame, items)
        else:
            token = leases.grant(thread, holder)
            frame.state = TaskFrame.State.RUNNING
            frame.save(update_fields=["state"])
            # After a question card the answer itself says that the work goes on; after an interrupt it is said here.
            later = TaskFrame.objects.filter(thread=thread, pk__gt=frame.pk).exclude(source__in=frames.RENEWALS)
            if not frames.is_renewal(frame.source) and later.exists():
                append_note(thread, generation, RESUMED_NOTE)
        emit_all(thread.pk, thread.owner_id, [*events, frames.state_event(thread, frame)])
        return Holding(
            thread_id=thread.pk,
            owner_id=thread.owner_id,
            token=token,
            frame_id=frame.pk,
            level=frame.level,
            generation_id=generation.pk,
            source=frame.source,
            language=thread.owner.language,
            fresh=fresh,
            opens=generation if generation.opening is None else None,
        )


def _title(items: Sequence[InboxItem]) -> str:
    """What a conversation without a title is called from its first words on."""
    return next((title_from(item.text) for item in items if item.source == "user"), "")


def sweep(thread_id: int) -> bool:
    """End a lapsed turn as interrupted, so that whoever hears the ring may take the thread. True if there was one."""
    with transaction.atomic():
        try:
            thread = lock_thread(thread_id)
        except ThreadGone:
            return False
        if thread.state != Thread.State.RUNNING or not lapsed(thread):
            return False
        ending.interrupt_and_settle(thread, TaskFrame.EndReason.INTERRUPTED)
        return True
