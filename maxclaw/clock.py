"""The one source of now.

Everything that asks for the time asks here, so that tests and demonstrations can move it: inside a process
with `moved`, across processes by starting them with MAXCLAW_CLOCK_SHIFT_SECONDS.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from maxclaw.configuration import ENVIRONMENT, ConfigurationError, exit_with

try:
    _shift_seconds = ENVIRONMENT.fraction("MAXCLAW_CLOCK_SHIFT_SECONDS", 0.0, minimum=float("-inf"))
except ConfigurationError as error:
    exit_with(error)


def now() -> datetime:
    """The present moment, aware, in UTC, moved by this process's shift."""
    return datetime.now(UTC) + timedelta(seconds=_shift_seconds)


def monotonic() -> float:
    """Seconds for measuring durations. Never moved: a shift is no elapsed work."""
    return time.monotonic()


def move(seconds: float) -> None:
    """Move this process's clock by `seconds`, forward or back, on top of earlier moves."""
    global _shift_seconds
    _shift_seconds += seconds


@contextmanager
def moved(seconds: float) -> Iterator[None]:
    """Move the clock for the length of a block."""
    move(seconds)
    try:
        yield
    finally:
        move(-seconds)
