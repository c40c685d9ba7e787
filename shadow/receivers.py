"""What happens below and matters here."""

from typing import Any

from memory.signals import rested
from shadow import cancelling, triggers
from shadow.models import ShadowRun
from threads.signals import SettledReason, thread_settled, user_spoke


def connect() -> None:
    """Listen; asking twice does no harm."""
    thread_settled.connect(came_to_rest, dispatch_uid="shadow.came_to_rest")
    rested.connect(turn_ended, dispatch_uid="shadow.turn_ended")
    user_spoke.connect(person_spoke, dispatch_uid="shadow.person_spoke")


def came_to_rest(thread: int, reason: SettledReason, **_signal: Any) -> None:
    """What a conversation came to rest for is the reason of its run."""
    if reason != SettledReason.TURN_BOUNDARY:
        triggers.trigger(thread, ShadowRun.Reason(reason.value))


def turn_ended(thread: int, reason: SettledReason, **_signal: Any) -> None:
    """What was queued while a turn went on is taken after it. Turns are many and such runs few, so the question is
    asked in the background."""
    if reason == SettledReason.TURN_BOUNDARY:
        triggers.trigger(thread, ShadowRun.Reason.TURN_BOUNDARY)


def person_spoke(thread: int, **_signal: Any) -> None:
    """The person goes first."""
    cancelling.cancel(thread)
