"""The lease under which one process runs a thread.

A lease is a token on the thread's row. Each taking has a new one; every write of the turn locks the row and compares
it, so a holder that stalled and woke writes nothing more.
"""

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection

from agent.models import TaskFrame
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
    thread.state = Thread.State.RUNNING
    thread.lease_token = uuid.uuid4()
    thread.lease_holder = holder
    thread.lease_until = clock.now() + timedelta(seconds=settings.LEASE_SECONDS)
    thread.updated = clock.now()
    thread.save(update_fields=["title", "state", "lease_token", "lease_holder", "lease_until", "updated"])
    return thread.lease_token


def renew(holding: Holding) -> tuple[bool, bool]:
    """Hold on for another LEASE_SECONDS. Returns (still held, stop asked): stop is read again at each renewal, so
    that a lost ring costs at most one interval."""
    held = Thread.objects.filter(pk=holding.thread_id, lease_token=holding.token).update(
        lease_until=clock.now() + timedelta(seconds=settings.LEASE_SECONDS)
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


def _let_go(thread: Thread, state: Thread.State) -> None:
    thread.state = state
    thread.lease_token = None
    thread.lease_until = None
    thread.lease_holder = ""
    thread.updated = clock.now()


def lapsed(thread: Thread) -> bool:
    """Whether the thread's holder has not renewed in time."""
    return thread.lease_until is None or thread.lease_until < clock.now()
