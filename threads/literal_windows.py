"""How what was found literally is shown: windows around matches, labelled, in a bounded text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from threads.excerpts import WINDOW_MAX_CHARS, Folded, Window, window
from threads.history import ROLE_NAMES
from threads.models import Message
from threads.search_range import SearchRow

LITERAL_MAX_CHARS = 8_000
WINDOW_MIN_CHARS = 200
WINDOW_DECAY = 0.8
SHOWN_MAX = 300
LABEL_MAX_CHARS = 60
LAST_LINE_CHARS = 100
LEGEND = "(m: is a message id, g: a generation id)"
NOTHING_HOLDS = "No message holds these words."
NOTHING_READ_HOLDS = "None of the messages that were read holds these words, and not all were read. Narrow the query."
NOTICE_CHARS = 80  # at most, of a window that lacks part of its text


@dataclass(frozen=True)
class LiteralHit:
    """One window: of which row, which of its fields, and where it stands in that field."""

    message_id: int
    generation_id: int
    role: str
    field: str
    window: Window
    text: str


@dataclass(frozen=True)
class Field:
    """A field of a row: its name, its text, and where that begins in the pages of the row."""

    name: str
    text: Folded
    offset: int


@dataclass(frozen=True)
class Place:
    """A match to be shown: in a field, at folded characters."""

    row: SearchRow
    field: Field
    begin: int
    end: int


def fill(places: Iterable[Place]) -> list[LiteralHit]:
    """Windows of the places, best first, as long as there is room, smaller ones further down: rendered, they are at
    most LITERAL_MAX_CHARS characters."""
    room = LITERAL_MAX_CHARS - len(LEGEND) - LAST_LINE_CHARS
    hits: list[LiteralHit] = []
    for place in places:
        size = max(round(WINDOW_MAX_CHARS * WINDOW_DECAY ** len(hits)), WINDOW_MIN_CHARS)
        hit = _hit(place, size)
        if any(_overlap(hit, other) for other in hits):
            continue
        fitting = _within(room - 1, place, hit)
        if fitting is None:
            break
        hits.append(fitting)
        room -= len(fitting.text) + 1
        if len(hits) >= SHOWN_MAX:
            break
    return hits


def rendered(hits: Sequence[LiteralHit], left_out: int, *, exact: bool) -> str:
    """The hits as a model reads them, and how many more there are."""
    lines = [LEGEND, *(hit.text for hit in hits)]
    if not hits and not left_out:
        return NOTHING_HOLDS if exact else NOTHING_READ_HOLDS
    if left_out:
        count = f"{left_out:,}" if exact else f"At least {left_out:,}"
        lines.append(f"{count} more hits are not shown. Narrow the query to see them.")
    elif not exact:
        lines.append("More messages may hold these words. Narrow the query to see them.")
    return "\n".join(lines)


def _within(room: int, place: Place, hit: LiteralHit) -> LiteralHit | None:
    """The hit in at most `room` characters, shortened where it must be; None where hardly a window would be left."""
    if len(hit.text) <= room:
        return hit
    # What is cut for the first time gains the notice that says so.
    notice = NOTICE_CHARS if hit.window.is_whole else 0
    size = len(hit.window.text) - (len(hit.text) - room) - notice
    if size < WINDOW_MIN_CHARS // 2:
        return None
    smaller = _hit(place, size)
    return smaller if len(smaller.text) <= room else None


def _overlap(one: LiteralHit, other: LiteralHit) -> bool:
    return (
        one.message_id == other.message_id
        and one.field == other.field
        and one.window.begin < other.window.end
        and other.window.begin < one.window.end
    )


def _hit(place: Place, size: int) -> LiteralHit:
    row = place.row
    begin, end = place.field.text.origin(place.begin, place.end)
    shown = window(place.field.text.text, begin, end, size)
    role = ROLE_NAMES[Message.Role(row.role)]
    name = place.field.name[:LABEL_MAX_CHARS]
    text = f"[m:{row.id}] {role}, {name}, g:{row.generation_id}, {row.created:%Y-%m-%d}: {shown.text}"
    if not shown.is_whole:
        text += f" [part of it: message_context_read m:{row.id} offset {place.field.offset + shown.begin}]"
    return LiteralHit(row.id, row.generation_id, row.role, place.field.name, shown, text)
