"""What happens below and matters here."""

from typing import Any

from django_q.tasks import async_task

from threads.signals import SettledReason, thread_settled


def connect() -> None:
    """Listen; asking twice does no harm."""
    thread_settled.connect(embed_what_was_said, dispatch_uid="memory.embed_what_was_said")


def embed_what_was_said(thread: int, reason: SettledReason, **_signal: Any) -> None:
    """What was said is found by its meaning soon, not only at the next tick."""
    async_task("memory.tasks.came_to_rest", thread, reason.value)
