"""Finding old words exactly: the literal part of searching a conversation.

Rows that hold the whole query come first, the newest first. Then rows that hold words of it, in any form, ranked by
BM25 over the best passage of each. Windows shrink as the rank falls, so that more evidence fits. How long the result is
never depends on how much there is to find; what is left out is counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import transaction

from threads import lexical
from threads.excerpts import WINDOW_MAX_CHARS, Folded, Window, densest, window
from threads.history import ROLE_NAMES, readable_thread
from threads.models import Message
from threads.search_range import Matched, Range, SearchRow
from threads.search_terms import Terms, terms_of
from threads.transcript import tool_calls_labelled
from threads.visibility import Viewer

LITERAL_MAX_CHARS = 8_000
WINDOW_MIN_CHARS = 200
WINDOW_DECAY = 0.8
RANKED_MAX = 400
LONG_RANKED_MAX = 48
FETCHED_AT_ONCE = 16
SHOWN_MAX = 100
LABEL_MAX_CHARS = 60
LAST_LINE_CHARS = 160
NOTICE_CHARS = 60  # of a window that lacks part of its text


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
class LiteralResult:
    """`text` is the hits rendered, at most LITERAL_MAX_CHARS. `total` counts the messages found, `left_out` those of
    them that are not shown; not `exact`: there are at least so many. `nothing_stored`: the conversation has nothing
    that could be found."""

    hits: list[LiteralHit]
    total: int
    left_out: int
    exact: bool
    nothing_stored: bool
    text: str


@dataclass(frozen=True)
class _Field:
    name: str
    text: Folded


@dataclass(frozen=True)
class _Place:
    """A match to be shown: in a field, at folded characters."""

    row: SearchRow
    field: _Field
    begin: int
    end: int


def literal_search(viewer: Viewer, channel: str, query: str, *, only_cold: bool = False) -> LiteralResult:
    """The rows of a conversation, and of what it was copied from, that hold the query or words of it. `only_cold`:
    only rows that were moved out of the context.

    Raises HistoryRefused, whose text says what to change, for a query that asks for nothing, for an unknown channel or
    another owner's (one answer), and for a conversation of one's own that the viewer's level forbids.
    """
    terms = terms_of(query)
    with transaction.atomic():
        searched = Range(viewer, readable_thread(viewer, channel), only_cold=only_cold)
        whole = searched.holding(terms.whole)
        # Where the query itself fills the result, rows with some word of it are neither shown nor counted.
        by_words = Matched([], complete=True)
        if len(whole.ids) < SHOWN_MAX and terms.needles and terms.needles != (terms.whole,):
            by_words = searched.holding_any(terms.needles)
        known = set(whole.ids)
        others = [(id, held) for id, held in by_words.rows if id not in known]
        places = _places(searched, terms, whole.ids, others)
        hits, shown = _fill(places)
        total = len(whole.ids) + len(others)
        nothing_stored = not total and searched.is_empty()
    exact = whole.complete and by_words.complete
    return LiteralResult(
        hits=hits,
        total=total,
        left_out=total - len(shown),
        exact=exact,
        nothing_stored=nothing_stored,
        text=_rendered(hits, total - len(shown), exact=exact),
    )


def _places(searched: Range, terms: Terms, whole: Sequence[int], others: Sequence[tuple[int, int]]) -> Iterator[_Place]:
    """What to show, best first, read as far as it is asked for; at last further places of the rows shown first."""
    further: list[_Place] = []
    for first in range(0, len(whole), FETCHED_AT_ONCE):
        batch = whole[first : first + FETCHED_AT_ONCE]
        rows = searched.rows(batch)
        for id in batch:
            found = list(_whole_places(rows[id], terms.whole)) if id in rows else []
            yield from found[:1]
            further += found[1:]
    yield from _ranked(searched, terms, others)
    yield from further


def _whole_places(row: SearchRow, needle: str) -> Iterator[_Place]:
    for field in _fields(row):
        shown_to = -1
        for place in field.text.find_all(needle):
            if place >= shown_to:
                yield _Place(row, field, place, place + len(needle))
                shown_to = place + WINDOW_MAX_CHARS


def _ranked(searched: Range, terms: Terms, others: Sequence[tuple[int, int]]) -> Iterator[_Place]:
    """Rows by the words that they hold: the most telling sets of words are read, and their best passages ranked."""
    if not others:
        return
    population = searched.population()
    weights = [
        lexical.rarity(population, sum(1 for _id, held in others if held >> bit & 1))
        for bit in range(len(terms.needles))
    ]
    by_weight = sorted(others, key=lambda row: (_weight(row[1], weights), row[0]), reverse=True)
    passages: dict[int, _Place] = {}
    texts: dict[int, str] = {}
    rows = searched.rows([id for id, _held in by_weight[:RANKED_MAX]])
    for id, _held in by_weight[:RANKED_MAX]:
        if id in rows and (place := _best_passage(rows[id], terms.needles, weights)) is not None:
            passages[id] = place
            begin = max(place.begin - WINDOW_MAX_CHARS // 4, 0)
            texts[id] = place.field.text.folded[begin : begin + WINDOW_MAX_CHARS]
    scores = lexical.bm25(terms.query, texts, population)
    for word in terms.compounds:
        holders = [id for id, text in texts.items() if word in text]
        for id in holders:
            scores[id] = scores.get(id, 0.0) + lexical.rarity(population, len(holders))
    for id in sorted(passages, key=lambda id: (scores.get(id, 0.0), id), reverse=True):
        yield passages[id]


def _weight(held: int, weights: Sequence[float]) -> float:
    return sum(weight for bit, weight in enumerate(weights) if held >> bit & 1)


def _best_passage(row: SearchRow, needles: Sequence[str], weights: Sequence[float]) -> _Place | None:
    best: _Place | None = None
    best_weight = 0.0
    for field in _fields(row):
        found = sorted(
            (place, bit, weights[bit]) for bit, needle in enumerate(needles) for place in field.text.find_all(needle)
        )
        if not found:
            continue
        (begin, bit), weight = densest(found, WINDOW_MAX_CHARS // 2)
        if weight > best_weight:
            best, best_weight = _Place(row, field, begin, begin + len(needles[bit])), weight
    return best


def _fields(row: SearchRow) -> Iterator[_Field]:
    if row.text:
        yield _Field("text", Folded(row.text))
    for label, text in tool_calls_labelled(row.wire):
        yield _Field(label, Folded(text))


def _fill(places: Iterator[_Place]) -> tuple[list[LiteralHit], set[int]]:
    """Windows as long as there is room, smaller ones further down. Returns them and the ids of the rows shown."""
    room = LITERAL_MAX_CHARS - LAST_LINE_CHARS
    hits: list[LiteralHit] = []
    for place in places:
        size = max(round(WINDOW_MAX_CHARS * WINDOW_DECAY ** len(hits)), WINDOW_MIN_CHARS)
        hit = _hit(place, size)
        if any(_overlap(hit, other) for other in hits):
            continue
        if len(hit.text) + 1 > room:
            smaller = size - (len(hit.text) + 1 - room) - NOTICE_CHARS
            if smaller < WINDOW_MIN_CHARS // 2:
                break
            hit = _hit(place, smaller)
        hits.append(hit)
        room -= len(hit.text) + 1
        if len(hits) >= SHOWN_MAX:
            break
    return hits, {hit.message_id for hit in hits}


def _overlap(one: LiteralHit, other: LiteralHit) -> bool:
    return (
        one.message_id == other.message_id
        and one.field == other.field
        and one.window.begin < other.window.end
        and other.window.begin < one.window.end
    )


def _hit(place: _Place, size: int) -> LiteralHit:
    row = place.row
    begin, end = place.field.text.origin(place.begin, place.end)
    shown = window(place.field.text.text, begin, end, size)
    role = ROLE_NAMES[Message.Role(row.role)]
    name = place.field.name[:LABEL_MAX_CHARS]
    text = f"[m:{row.id}] {role}, {name}, generation {row.generation_id}, {row.created:%Y-%m-%d}: {shown.text}"
    if not shown.is_whole:
        text += f" [part of it; message_context_read m:{row.id}]"
    return LiteralHit(row.id, row.generation_id, row.role, place.field.name, shown, text)


def _rendered(hits: Sequence[LiteralHit], left_out: int, *, exact: bool) -> str:
    lines = [hit.text for hit in hits]
    if not hits and not left_out:
        return "No message holds these words."
    if left_out or not exact:
        lines.append(
            f"{'' if exact else 'At least '}{left_out:,} more hits are not shown. Narrow the query to see them."
        )
    return "\n".join(lines)
