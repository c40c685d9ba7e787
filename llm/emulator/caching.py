"""Prompt caching by the published rules.

An entry is the digest of the whole prefix up to one marked block. A request looks, from its last marker
backwards, at most LOOK_BACK_POSITIONS positions behind each marker for an entry that an earlier request wrote
exactly there. Entries live for their lifetime from the start of the request that wrote or last read them, can
be read only once the answer of the request that writes them has begun, and belong to one workspace and one
model.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

from llm.emulator.prompt import Marker, Prompt

LOOK_BACK_POSITIONS = 20
LIFETIME_SECONDS = {"5m": 300.0, "1h": 3600.0}
ENTRIES_MAX = 500_000
EVICT_EVERY = 256


@dataclass(slots=True)
class Entry:
    """One cached prefix: when it lapses (seconds, injected clock) and its own lifetime."""

    expires: float
    ttl: str


@dataclass(slots=True)
class CachePlan:
    """What one request reads and writes. Token counts add up to the whole prompt."""

    read_tokens: int = 0
    write_5m_tokens: int = 0
    write_1h_tokens: int = 0
    input_tokens: int = 0
    read_position: int | None = None
    started: float = 0.0
    writes: list[tuple[bytes, str]] = field(default_factory=list)


class PromptCache:
    """All cached prefixes of a running emulator."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self._plans = 0

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        self._entries.clear()

    def plan(self, prompt: Prompt, *, scope: str, minimum_tokens: int, started: float) -> CachePlan:
        """Look up what `prompt` can read, refresh it, and say what its answer will write.

        `scope` names workspace and model; `started` is the request's start in seconds on the injected clock.
        """
        self._plans += 1
        if self._plans % EVICT_EVERY == 0:
            self._evict(started)
        plan = CachePlan(started=started)
        markers = sorted(prompt.markers, key=lambda marker: marker.position)
        eligible = [marker for marker in markers if prompt.totals[marker.position] >= minimum_tokens]
        if eligible:
            digests = _prefix_digests(prompt, scope, eligible)
            plan.read_position = self._find(eligible, digests, started)
            self._refresh(eligible, digests, plan.read_position, started)
            plan.writes = [
                (digests[marker.position], marker.ttl)
                for marker in eligible
                if plan.read_position is None or marker.position > plan.read_position
            ]
        _split(plan, prompt, eligible)
        return plan

    def commit(self, plan: CachePlan) -> None:
        """Make the entries of `plan` readable: its answer has begun."""
        for digest, ttl in plan.writes:
            entry = Entry(plan.started + LIFETIME_SECONDS[ttl], ttl)
            present = self._entries.get(digest)
            # Two requests at once may write one prefix: the longer life stays.
            if present is None or present.expires < entry.expires:
                self._entries[digest] = entry
            self._entries.move_to_end(digest)
        while len(self._entries) > ENTRIES_MAX:
            self._entries.popitem(last=False)

    def _find(self, markers: list[Marker], digests: dict[int, bytes], now: float) -> int | None:
        """The highest position behind some marker at which a live entry was written."""
        for marker in reversed(markers):
            for position in range(marker.position, max(marker.position - LOOK_BACK_POSITIONS, -1), -1):
                if self._live(digests[position], now):
                    return position
        return None

    def _refresh(self, markers: list[Marker], digests: dict[int, bytes], read_position: int | None, now: float) -> None:
        """A read refreshes its entry, and the entries exactly at the markers that it covers."""
        if read_position is None:
            return
        covered = {marker.position for marker in markers if marker.position <= read_position}
        for position in covered | {read_position}:
            entry = self._live(digests[position], now)
            if entry:
                entry.expires = max(entry.expires, now + LIFETIME_SECONDS[entry.ttl])
                self._entries.move_to_end(digests[position])

    def _live(self, digest: bytes, now: float) -> Entry | None:
        entry = self._entries.get(digest)
        return entry if entry and entry.expires > now else None

    def _evict(self, now: float) -> None:
        for digest in [digest for digest, entry in self._entries.items() if entry.expires <= now]:
            del self._entries[digest]


def _prefix_digests(prompt: Prompt, scope: str, markers: list[Marker]) -> dict[int, bytes]:
    """Digest of the prefix ending at each position that some marker's look-back touches."""
    wanted = {
        position
        for marker in markers
        for position in range(max(marker.position - LOOK_BACK_POSITIONS + 1, 0), marker.position + 1)
    }
    running = hashlib.blake2b(scope.encode(), digest_size=20)
    update = running.update
    digests: dict[int, bytes] = {}
    for position, piece in enumerate(prompt.pieces[: markers[-1].position + 1]):
        if position == prompt.system_start:
            update(b"|system|")
        if position == prompt.messages_start:
            update(b"|messages|" + prompt.messages_level)
        update(b"%d:" % len(piece))
        update(piece)
        if position in wanted:
            digests[position] = running.digest()
    return digests


def _split(plan: CachePlan, prompt: Prompt, markers: list[Marker]) -> None:
    """Bill: read up to the hit, 1h writes up to the highest 1h marker behind it, 5m writes up to the last
    marker.
    """
    hit = -1 if plan.read_position is None else plan.read_position
    read = prompt.totals[hit] if hit >= 0 else 0
    long_end = max(
        (prompt.totals[marker.position] for marker in markers if marker.ttl == "1h" and marker.position > hit),
        default=read,
    )
    last_end = max((prompt.totals[marker.position] for marker in markers), default=read)
    last_end = max(last_end, long_end, read)
    plan.read_tokens = read
    plan.write_1h_tokens = long_end - read
    plan.write_5m_tokens = last_end - long_end
    plan.input_tokens = prompt.total_tokens - last_end
