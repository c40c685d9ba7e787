"""Finding old words exactly: the literal part of searching a conversation.

Rows that hold the whole query come first, the newest first. Then rows that hold words of it, in any form, ranked by
BM25 over the best passage of each. Windows shrink as the rank falls, so that more evidence fits. How long the result is
never depends on how much there is to find; what is left out is counted.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from itertools import accumulate, islice
from typing import Self

from django.db import transaction

from threads import lexical
from threads.excerpts import LEAD_CHARS, WINDOW_MAX_CHARS, Folded, densest, find_all
from threads.history import readable_thread
from threads.literal_windows import SHOWN_MAX, Field, LiteralHit, Place, fill, rendered
from threads.reading import parts_of
from threads.search_range import Found, Range, SearchRow, holding_anywhere, rows_shown
from threads.search_terms import Terms, terms_of
from threads.visibility import Viewer

# As many short rows as have so many bytes together are ranked: reading and taking them apart is what costs.
SHORT_RANKED_BYTES = 300_000
LONG_RANKED_MAX = 24
# A long row seems to hold a word where it holds its runs of three bytes, as nearly every log does of every common word.
# So many are read, some after others, for what they do hold.
LONG_READ = (64, 128)
PASSAGE_SPAN = WINDOW_MAX_CHARS // 2
# Of rows found by words alone so many are shown, and after the first few none below this share of the best one's score:
# the others share a common word or two with the query, and take the room of what is near to it in meaning. They are
# counted as left out.
WORDS_SHOWN_FIRST = 4
WORDS_SHOWN_MAX = 16
WORDS_SHOWN_SHARE = 0.3
FETCHED_AT_ONCE = 12


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
class _Words:
    """Rows found by words: where those worth showing hold the most telling words in their folded text, and the number
    of the needle that stands there, best first; how many rows there are in all; what each needle weighs."""

    places: dict[int, tuple[int, int]]
    count: int
    complete: bool
    weights: list[float]

    @classmethod
    def none(cls) -> Self:
        return cls({}, 0, complete=True, weights=[])


def literal_search(
    viewer: Viewer, channel: str, query: str, *, only_cold: bool = False, before: int | None = None
) -> LiteralResult:
    """The rows of a conversation, and of what it was copied from, that hold the query or words of it. `only_cold`:
    only rows that were moved out of the context. `before`: the row that asks, which is not found, nor what follows it.

    Raises HistoryRefused, whose text says what to change, for a query that asks for nothing, for an unknown channel or
    another owner's (one answer), and for a conversation of one's own that the viewer's level forbids.
    """
    terms = terms_of(query)
    with transaction.atomic():
        searched = Range(viewer, readable_thread(viewer, channel), only_cold=only_cold, before=before)
        whole = _holding(searched.holding, terms)
        by_words = _Words.none()
        # Where the query itself fills the result, or is one word that was found, rows with parts of it are neither
        # shown nor counted.
        is_enough = len(whole.ids) >= SHOWN_MAX or (terms.is_one_word and whole.ids)
        if not is_enough and terms.needles not in ((), (terms.whole,)):
            by_words = _by_words(searched, terms, set(whole.ids))
        hits = fill(_places(searched, terms, whole.ids, by_words))
        total = len(whole.ids) + by_words.count
        nothing_stored = not total and searched.is_empty()
    exact = whole.complete and by_words.complete
    left_out = total - len({hit.message_id for hit in hits})
    return LiteralResult(hits, total, left_out, exact, nothing_stored, rendered(hits, left_out, exact=exact))


def literal_search_everywhere(viewer: Viewer, query: str) -> LiteralResult:
    """The newest rows that hold the whole query in all conversations that a viewer may see, results and arguments of
    tools included. Raises HistoryRefused for a query that asks for nothing."""
    terms = terms_of(query)
    with transaction.atomic():
        found = _holding(partial(holding_anywhere, viewer), terms)
        rows = rows_shown(viewer.owner_id, found.ids[:SHOWN_MAX])
    hits = fill(place for id in found.ids if id in rows for place in islice(_whole_places(rows[id], terms), 1))
    left_out = len(found.ids) - len({hit.message_id for hit in hits})
    text = rendered(hits, left_out, exact=found.complete)
    return LiteralResult(hits, len(found.ids), left_out, found.complete, nothing_stored=False, text=text)


def _holding(holding: Callable[[str], Found], terms: Terms) -> Found:
    """The rows that hold the query: first those that hold it as given, then those without the quotes around it."""
    found = [holding(form) for form in terms.forms]
    return Found(list(dict.fromkeys(id for each in found for id in each.ids)), all(each.complete for each in found))


def _by_words(searched: Range, terms: Terms, known: set[int]) -> _Words:
    """Rows other than the known ones that hold words of the query: those with the most telling sets of words are read,
    and ranked by their best passages."""
    found = searched.holding_any(terms.needles)
    short = [row for row in found.short if row[0] not in known]
    long = [row for row in found.long if row[0] not in known]
    if not short and not long:
        return _Words.none()
    population = searched.population()
    long_held, all_read = _held_by_long(searched, terms.needles, long, _weights(terms, population, [*short, *long]))
    weights = _weights(terms, population, [*short, *long_held])
    short.sort(key=partial(_telling, weights), reverse=True)
    bytes_up_to = accumulate(size for _id, _held, size in short)
    best = [row[0] for row, size in zip(short, bytes_up_to, strict=True) if size <= SHORT_RANKED_BYTES]
    best += [row[0] for row in nlargest(LONG_RANKED_MAX, long_held, key=partial(_telling, weights))]
    places: dict[int, tuple[int, int]] = {}
    passages: dict[int, str] = {}
    for id, text in searched.texts(best).items():
        if found_in := _matches(text, terms.needles, weights):
            places[id], _weight = densest(found_in, PASSAGE_SPAN)
            start = max(places[id][0] - LEAD_CHARS, 0) if len(text) > WINDOW_MAX_CHARS else 0
            passages[id] = text[start : start + WINDOW_MAX_CHARS]
    scores = lexical.bm25(terms.query, passages, population)
    for word in terms.compounds:
        having = [id for id, passage in passages.items() if word in passage]
        for id in having:
            scores[id] = scores.get(id, 0.0) + lexical.rarity(population, len(having))
    ranked = sorted(passages, key=lambda id: (scores.get(id, 0.0), id), reverse=True)
    least = scores.get(ranked[0], 0.0) * WORDS_SHOWN_SHARE if ranked else 0.0
    shown = ranked[:WORDS_SHOWN_FIRST]
    shown += [id for id in ranked[WORDS_SHOWN_FIRST:WORDS_SHOWN_MAX] if scores.get(id, 0.0) >= least]
    return _Words(
        places={id: places[id] for id in shown},
        count=len(short) + len(long_held),
        complete=found.complete and all_read,
        weights=weights,
    )


def _held_by_long(
    searched: Range, needles: Sequence[str], seeming: Sequence[tuple[int, int]], weights: Sequence[float]
) -> tuple[list[tuple[int, int]], bool]:
    """What long rows hold of the needles that they seem to hold, those left out that hold none, and whether all were
    read: the most telling are read first, until no other can come before the LONG_RANKED_MAX best."""
    unread = sorted(seeming, key=partial(_telling, weights), reverse=True)
    held: list[tuple[int, int]] = []
    for count in LONG_READ:
        found = searched.held([id for id, _bits in unread[:count]], needles)
        held += [(id, bits) for id, bits in found.items() if bits]
        unread = unread[count:]
        if not unread:
            break
        best_unread = _telling(weights, unread[0])
        if sum(1 for row in held if _telling(weights, row) > best_unread) >= LONG_RANKED_MAX:
            break
    return held, not unread


def _weights(terms: Terms, population: int, rows: Sequence[Sequence[int]]) -> list[float]:
    """What each needle weighs, by how many of the rows hold it."""
    holders = (sum(row[1] >> bit & 1 for row in rows) for bit in range(len(terms.needles)))
    return [lexical.rarity(population, count) for count in holders]


def _telling(weights: Sequence[float], row: Sequence[int]) -> tuple[float, int]:
    """How much the needles say that a row (id, bits, …) holds; of equals the newest says most."""
    return sum(weight for bit, weight in enumerate(weights) if row[1] >> bit & 1), row[0]


def _matches(text: str, needles: Sequence[str], weights: Sequence[float]) -> list[tuple[int, int, float]]:
    return sorted((place, bit, weights[bit]) for bit, needle in enumerate(needles) for place in find_all(text, needle))


def _places(searched: Range, terms: Terms, whole: Sequence[int], by_words: _Words) -> Iterator[Place]:
    """What to show, best first, read as far as it is asked for; at last further places of the rows shown first."""
    further: list[Place] = []
    for row in _read(searched, whole):
        found = list(_whole_places(row, terms))
        yield from found[:1]
        further += found[1:]
    for row in _read(searched, list(by_words.places)):
        if row.wire is None:  # its folded text is one field alone
            begin, bit = by_words.places[row.id]
            field = next(_fields(row))
            yield Place(row, field, begin, begin + len(terms.needles[bit]))
        elif place := _best_place(row, terms.needles, by_words.weights):
            yield place
    yield from further


def _read(searched: Range, ids: Sequence[int]) -> Iterator[SearchRow]:
    for first in range(0, len(ids), FETCHED_AT_ONCE):
        batch = ids[first : first + FETCHED_AT_ONCE]
        rows = searched.rows(batch)
        yield from (rows[id] for id in batch if id in rows)


def _whole_places(row: SearchRow, terms: Terms) -> Iterator[Place]:
    """Where a row holds the query, in the first of its forms that it holds."""
    fields = list(_fields(row))
    form = next((form for form in terms.forms if any(form in field.text.folded for field in fields)), terms.whole)
    for field in fields:
        shown_to = -1
        for place in find_all(field.text.folded, form):
            if place >= shown_to:
                yield Place(row, field, place, place + len(form))
                shown_to = place + WINDOW_MAX_CHARS


def _best_place(row: SearchRow, needles: Sequence[str], weights: Sequence[float]) -> Place | None:
    """Where a field of a row holds the most telling words close together."""
    best: Place | None = None
    best_weight = 0.0
    for field in _fields(row):
        found = _matches(field.text.folded, needles, weights)
        if not found:
            continue
        (begin, bit), weight = densest(found, PASSAGE_SPAN)
        if weight > best_weight:
            best, best_weight = Place(row, field, begin, begin + len(needles[bit])), weight
    return best


def _fields(row: SearchRow) -> Iterator[Field]:
    for part in parts_of(row.text, row.wire):
        yield Field(part.field, Folded(part.text), part.offset)
