"""The part by meaning, as a model reads it: short excerpts in the order in which they were said."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from maxclaw.text import head
from memory.meaning_search import MeaningHit, needles_of
from threads.excerpts import ELLIPSIS, Folded, densest, find_all, window
from threads.history import ROLE_NAMES
from threads.literal_windows import LiteralHit
from threads.models import Message

# The longest excerpt; each further one is shorter, so that more of them fit.
EXCERPT_MAX_CHARS = 480
EXCERPT_MIN_CHARS = 100
EXCERPT_DECAY = 0.97
# Where the literal part and facts leave less room than this, excerpts are shorter by as much, down to the least that
# tells what a message speaks of: about as many of them fit.
WHOLE_ROOM_CHARS = 11_500
EXCERPT_LEAST_CHARS = 70
TITLE_MAX_CHARS = 60
LEFT_OUT = "({count:,} more excerpts were cut. Narrow the query to see them.)"
LAST_LINE_CHARS = 80


class Listed(NamedTuple):
    """A list of excerpts, and how many of those found are not on it."""

    text: str
    left_out: int


@dataclass(frozen=True)
class _Line:
    hit: MeaningHit
    text: str

    @property
    def generation(self) -> tuple[int, int]:
        return self.hit.thread_id, self.hit.generation_id

    @property
    def day(self) -> tuple[int, int, str]:
        return *self.generation, f"{self.hit.created:%Y-%m-%d}"


def render(
    hits: Sequence[MeaningHit],
    query: str,
    room: int,
    *,
    total: int | None = None,
    shown: Sequence[LiteralHit] = (),
    channel: str | None = None,
) -> Listed:
    """As many of the hits as fit into `room` characters, best first, written down in the order in which they were
    said, under headings of generation and day. What the literal part shows already is not repeated, and counts as
    ranked before. `channel` is the conversation that was asked for: others are named."""
    needles = needles_of(query)
    left = room - LAST_LINE_CHARS
    lines: list[_Line] = []
    headed: set[tuple[object, ...]] = set()
    fresh = [hit for hit in hits if not is_shown(hit, shown)]
    for hit in fresh:
        line = _line(hit, needles, excerpt_chars(len(shown) + len(lines), room))
        chars = len(line.text) + 1
        if line.day not in headed:
            chars += len(_heading(line, channel, names_generation=line.generation not in headed)) + 2
        if chars > left:
            if left < EXCERPT_MIN_CHARS:
                break
            continue
        left -= chars
        lines.append(line)
        headed |= {line.day, line.generation}
    # By day first: messages that were imported may stand in another order, and each day has room for one heading.
    lines.sort(key=lambda line: (line.day, line.hit.message_id, line.hit.offset))
    parts = _grouped(lines, channel)
    left_out = len(fresh) - len(lines) + max((total or 0) - len(hits), 0)
    if left_out > 0:
        parts.append(LEFT_OUT.format(count=left_out))
    return Listed("\n\n".join(parts), left_out)


def excerpt_chars(rank: int, room: int) -> int:
    """How long the excerpt of a rank (from 0) may be, where all of them have so much room."""
    size = max(EXCERPT_MAX_CHARS * EXCERPT_DECAY**rank, EXCERPT_MIN_CHARS)
    return max(round(size * min(room / WHOLE_ROOM_CHARS, 1.0)), EXCERPT_LEAST_CHARS)


def _grouped(lines: Sequence[_Line], channel: str | None) -> list[str]:
    parts = []
    before: tuple[int, int] | None = None
    for _day, group in groupby(lines, key=lambda line: line.day):
        together = list(group)
        heading = _heading(together[0], channel, names_generation=together[0].generation != before)
        before = together[0].generation
        parts.append("\n".join([heading, *(line.text for line in together)]))
    return parts


def _heading(line: _Line, channel: str | None, *, names_generation: bool) -> str:
    day = f"# {line.hit.created:%Y-%m-%d}"
    if not names_generation:
        return day
    elsewhere = f", conversation {line.hit.channel} ({head(line.hit.title, TITLE_MAX_CHARS) or 'untitled'})"
    return f"{day}, generation {line.hit.generation_id}{'' if line.hit.channel == channel else elsewhere}"


def _line(hit: MeaningHit, needles: Collection[str], size: int) -> _Line:
    role = ROLE_NAMES[Message.Role(hit.role)]
    before = ELLIPSIS if hit.offset else ""
    return _Line(hit, f"m:{hit.message_id} {role}: {before}{excerpt(hit.text, needles, size)}")


def excerpt(text: str, needles: Collection[str], size: int) -> str:
    """At most `size` characters of a text, around most of the words that were asked for."""
    if len(text) <= size:
        return text
    folded = Folded(text)
    places = sorted(
        (place, number, 1.0) for number, needle in enumerate(needles) for place in find_all(folded.folded, needle)
    )
    if not places:
        return window(text, 0, 0, size).text
    (place, _number), _weight = densest(places, size // 2)
    begin, end = folded.origin(place, place + 1)
    return window(text, begin, end, size).text


def is_shown(hit: MeaningHit, shown: Sequence[LiteralHit]) -> bool:
    """Whether the literal part has most of these words already."""
    end = hit.offset + len(hit.text)
    overlaps = (
        min(end, other.window.end) - max(hit.offset, other.window.begin)
        for other in shown
        if other.message_id == hit.message_id and other.field == "text"
    )
    return any(overlap > len(hit.text) // 2 for overlap in overlaps)
