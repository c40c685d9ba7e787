"""The lease under which one process runs a thread.

A lease is a token on the thread's row. Each taking has a new one; every write of the turn locks the row and compares
it, so a holder that stalled and woke writes nothing more.
"""

import uuid
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings

from agent.models import TaskFrame
from maxclaw import clock
from threads.models import Thread


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
    opens: bool = False  # its generation has no opening yet


def grant(thread: Thread, holder: str) -> uuid.UUID:
    """Write a new lease onto the locked thread."""
    thread.state = Thread.State.RUNNING
    thread.lease_token = uuid.uuid4()
    thread.lease_holder = holder
    thread.lease_until = clock.now() + timedelta(seconds=settings.LEASE_SECONDS)
    thread.updated = clock.now()
    thread.save(update_fields=["state", "lease_token", "lease_holder", "lease_until", "updated"])
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
    thread.state = state
    thread.lease_token = None
    thread.lease_until = None
    thread.lease_holder = ""
    thread.updated = clock.now()
    thread.save(update_fields=["state", "lease_token", "lease_until", "lease_holder", "updated"])


def lapsed(thread: Thread) -> bool:
    """Whether the thread's holder has not renewed in time."""
    return thread.lease_until is None or thread.lease_until < clock.now()
