"""The lease under which one process runs a thread.

A lease is a token on the thread's row. Each taking has a new one; every write of the turn locks the row and compares
it, so a holder that stalled and woke writes nothing more.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection

from agent.models import InboxItem, TaskFrame
from maxclaw import clock
from threads.models import Generation, Thread


@dataclass
class Holding:
    """A turn in this process's hands: ids, the lease's token, the running frame."""

    thread_id: int
    owner_id: int
    token: uuid.UUID
    frame_id: int
    level: int
    generation_id: int
    source: str = ""
    language: str = "en"
    fresh: bool = False  # its frame was made with the taking, its first request counted
    opens: Generation | None = None  # its generation, where that has no opening yet: nobody else changes it till then


def grant(thread: Thread, holder: str) -> uuid.UUID:
    """Write a new lease onto the locked thread, and the title that it may just have got."""
    token = _hand_out(thread, holder)
    thread.save(update_fields=["title", "state", "lease_token", "lease_holder", "lease_until", "updated"])
    return token


def grant_new(thread: Thread, holder: str, frame: TaskFrame, taken: Sequence[InboxItem]) -> uuid.UUID:
    """`grant` together with the frame that begins and the items that became its rows, in one statement: every turn
    begins so. `frame` was not written yet and gets its id."""
    token = _hand_out(thread, holder)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH begun AS (
                INSERT INTO agent_taskframe
                    (thread_id, owner_id, level, source, state, steps, overflow_recoveries, stop_asked, end_reason,
                     notice, created)
                VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING id
            ), taken AS (
                UPDATE agent_inboxitem SET state = %s, message_id = became.message
                FROM unnest(%s::bigint[], %s::bigint[]) AS became(item, message)
                WHERE id = became.item AND owner_id = %s
            )
            UPDATE threads_thread
            SET title = %s, state = %s, lease_token = %s, lease_holder = %s, lease_until = %s, updated = %s
            WHERE id = %s RETURNING (SELECT id FROM begun)
            """,
            [
                thread.pk,
                thread.owner_id,
                frame.level,
                frame.source,
                frame.state,
                frame.steps,
                frame.overflow_recoveries,
                frame.stop_asked,
                frame.end_reason,
                frame.notice,
                frame.created,
                InboxItem.State.TAKEN,
                [item.pk for item in taken],
                [item.message_id for item in taken],
                thread.owner_id,
                thread.title,
                thread.state,
                token,
                thread.lease_holder,
                thread.lease_until,
                thread.updated,
                thread.pk,
            ],
        )
        frame.pk = cursor.fetchone()[0]
    frame._state.adding = False
    return token


def renew(holding: Holding) -> tuple[bool, bool]:
    """Hold on for another LEASE_SECONDS. Returns (still held, stop asked): stop is read again at each renewal, so
    that a lost ring costs at most one interval. What has lapsed is not held any more."""
    now = clock.now()
    held = Thread.objects.filter(pk=holding.thread_id, lease_token=holding.token, lease_until__gte=now).update(
        lease_until=now + timedelta(seconds=settings.LEASE_SECONDS)
    )
    stop_asked = TaskFrame.objects.filter(pk=holding.frame_id, stop_asked=True).exists()
    return bool(held), stop_asked


def release(thread: Thread, state: Thread.State) -> None:
    """Give the lease back. The thread is locked."""
    _let_go(thread, state)
    thread.save(update_fields=["state", "lease_token", "lease_until", "lease_holder", "updated"])


def release_after(thread: Thread, ended: TaskFrame) -> None:
    """Give the lease back and write how its last frame ended, in one statement: every turn ends so. The thread is
    locked."""
    _let_go(thread, Thread.State.IDLE)
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH ended AS (
                UPDATE agent_taskframe SET state = %s, end_reason = %s, notice = %s, ended = %s WHERE id = %s
            )
            UPDATE threads_thread
            SET state = %s, lease_token = NULL, lease_until = NULL, lease_holder = '', updated = %s
            WHERE id = %s
            """,
            [
                ended.state,
                ended.end_reason,
                ended.notice,
                ended.ended,
                ended.pk,
                thread.state,
                thread.updated,
                thread.pk,
            ],
        )


def _hand_out(thread: Thread, holder: str) -> uuid.UUID:
    thread.state = Thread.State.RUNNING
    thread.lease_token = token = uuid.uuid4()
    thread.lease_holder = holder
    thread.lease_until = clock.now() + timedelta(seconds=settings.LEASE_SECONDS)
    thread.updated = clock.now()
    return token


def _let_go(thread: Thread, state: Thread.State) -> None:
    thread.state = state
    thread.lease_token = None
    thread.lease_until = None
    thread.lease_holder = ""
    thread.updated = clock.now()
