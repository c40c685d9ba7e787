"""What the emulator was asked and how it ended, kept for tests to read."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from maxclaw import clock

ENTRIES_MAX = 1_000
BODIES_MAX_BYTES = 256 * 1024 * 1024
SECRET_HEADERS = ("authorization", "x-api-key")


@dataclass
class LogEntry:
    """One request.

    outcome: open, completed, refused (an error answer of the emulator's own), cancelled (the client went away),
    `fault:KIND`, or crashed (a mistake of the emulator's). Durations in seconds from arrival. `cache` says at which
    position the longest hit ended and how many positions the prompt has.
    """

    number: int
    request_id: str
    path: str
    arrived: str
    headers: dict[str, str]
    body: str | None = None
    model: str | None = None
    stream: bool = False
    status: int | None = None
    outcome: str = "open"
    error: str | None = None
    answered_by: str | None = None
    stop_reason: str | None = None
    usage: dict[str, Any] | None = None
    cache: dict[str, Any] | None = None
    deltas_sent: int = 0
    dropped_thinking: list[dict[str, str]] = field(default_factory=list)
    first_byte_seconds: float | None = None
    seconds: float | None = None
    started_monotonic: float = 0.0

    def as_dict(self, *, bodies: bool) -> dict[str, Any]:
        values = asdict(self)
        del values["started_monotonic"]
        if not bodies:
            del values["body"]
        return values

    def begin(self, status: int) -> None:
        """The first byte of the answer is about to go out."""
        self.status = status
        self.first_byte_seconds = clock.monotonic() - self.started_monotonic

    def end(self, outcome: str) -> None:
        self.outcome = outcome
        self.seconds = clock.monotonic() - self.started_monotonic


class RequestLog:
    """The newest requests, at most `limit`, their bodies at most BODIES_MAX_BYTES together."""

    def __init__(self) -> None:
        self.limit = ENTRIES_MAX
        self.keeps_bodies = True
        self._entries: deque[LogEntry] = deque()
        self._bodies_bytes = 0
        self._count = 0

    def open(self, path: str, headers: Mapping[str, str], request_id: str) -> LogEntry:
        """A new entry; numbers go on for the life of the process."""
        self._count += 1
        entry = LogEntry(
            number=self._count,
            request_id=request_id,
            path=path,
            arrived=clock.now().isoformat(),
            headers={name: "redacted" if name in SECRET_HEADERS else value for name, value in headers.items()},
            started_monotonic=clock.monotonic(),
        )
        self._entries.append(entry)
        while len(self._entries) > self.limit:
            self._drop_body(self._entries.popleft())
        return entry

    def keep_body(self, entry: LogEntry, raw: bytes) -> None:
        """Keep the body's text; older bodies go when there are too many bytes of them."""
        if not self.keeps_bodies:
            return
        entry.body = raw.decode("utf-8", "replace")
        self._bodies_bytes += len(entry.body)
        for older in self._entries:
            if self._bodies_bytes <= BODIES_MAX_BYTES or older is entry:
                break
            self._drop_body(older)

    def entries(self, since: int = 0) -> list[LogEntry]:
        """Entries with a number above `since`, oldest first."""
        return [entry for entry in self._entries if entry.number > since]

    @property
    def count(self) -> int:
        """Requests since the start of the process."""
        return self._count

    def clear(self) -> None:
        self._entries.clear()
        self._bodies_bytes = 0

    def _drop_body(self, entry: LogEntry) -> None:
        self._bodies_bytes -= len(entry.body or "")
        entry.body = None


class Holds:
    """Answers that wait until a test releases them, by name."""

    def __init__(self) -> None:
        self._waiting: list[tuple[str, asyncio.Event]] = []

    def names(self) -> list[str]:
        return [name for name, _ in self._waiting]

    def enter(self, name: str) -> asyncio.Event:
        """Start waiting. The caller leaves with `leave`."""
        event = asyncio.Event()
        self._waiting.append((name, event))
        return event

    def leave(self, event: asyncio.Event) -> None:
        self._waiting = [waiting for waiting in self._waiting if waiting[1] is not event]

    def release(self, name: str | None = None) -> int:
        """Let everything that waits under `name` go on, or everything. Returns how many."""
        chosen = [event for waiting_name, event in self._waiting if name in (None, waiting_name)]
        for event in chosen:
            event.set()
        return len(chosen)
