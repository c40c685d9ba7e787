"""Which words are embedded, and how they are cut.

Words of people and answers are embedded whole, in chunks of one meaning each; of a tool's result only its head and
tail: results are long, and their words are found by the literal search. What no model sees, what was rewound, what the
framework wrote and what a look into the past brought up again is not embedded.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast, Left, Length, Right

from maxclaw.text import boundary_after, boundary_before
from memory.secrets import places_in, redact, without
from threads.looking_back import SAYS_NEW_WORDS
from threads.models import Message
from threads.search_range import FROM_PEOPLE_AND_TOOLS

# A chunk ends after a sentence where one ends in its last part, else between words, else between signs.
_SENTENCE_END = re.compile(r"[.!?。！？…]+[\"'”’」）)\]]*(?:\s+|(?<=[。！？…]))|\n+")
_SPACE = re.compile(r"\s+")
LAST_PART = 0.5
# Read beyond a cut, so that it can be made between grapheme clusters.
MARGIN_CHARS = 200
# Read before the end of a long text, so that a secret which begins before it is known: no private key is longer.
SECRET_MAX_CHARS = 8_000


@dataclass(frozen=True)
class Chunk:
    """Characters `offset` to `offset + len(text)` of a message's text. `words` is what an embedding model gets of them,
    which may stand on another machine: without keys and passwords, those included that a cut goes through."""

    message_id: int
    offset: int
    text: str
    words: str


def embedded_rows(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Those of some messages whose words are embedded."""
    return (
        rows.filter(FROM_PEOPLE_AND_TOOLS, SAYS_NEW_WORDS, model_visible=True, wire__isnull=False)
        .exclude(text="")
        .exclude(left_because=Message.LeftBecause.SUPERSEDED)
    )


def chunks_of(rows: QuerySet[Message], max_chars: int) -> dict[int, list[Chunk]]:
    """The chunks of messages, by message id in ascending order. However long a tool's result, only what is embedded of
    it is read."""
    shown = Message.Role.TOOL
    ends = (
        rows.filter(role=shown)
        .annotate(size=Length("text"), start=Left("text", max_chars + MARGIN_CHARS))
        .annotate(end=Right(Cast("text", TextField()), max_chars + SECRET_MAX_CHARS))
        .values_list("pk", "size", "start", "end")
    )
    found = {pk: list(_ends(pk, size, start, end, max_chars)) for pk, size, start, end in ends}
    for pk, text in rows.exclude(role=shown).values_list("pk", "text"):
        found[pk] = list(_chunks(pk, text, 0, spans(text, max_chars)))
    return dict(sorted(found.items()))


def spans(text: str, max_chars: int) -> list[tuple[int, int]]:
    """Where the chunks of a text begin and end: in order, without gaps but blank ones, each at most `max_chars` long
    and cut after a sentence where that can be."""
    found = []
    begin = _skip_blank(text, 0)
    while begin < len(text):
        stop = _cut(text, begin, max_chars)
        end = begin + len(text[begin:stop].rstrip())
        if end > begin:
            found.append((begin, end))
        begin = _skip_blank(text, stop)
    return found


def words_to_embed(text: str) -> str:
    """Words that are asked, as an embedding model gets them: without keys and passwords."""
    return redact(text)


def _cut(text: str, begin: int, max_chars: int) -> int:
    if len(text) - begin <= max_chars:
        return len(text)
    limit = begin + max_chars
    for pattern in (_SENTENCE_END, _SPACE):
        ends = [found.end() for found in pattern.finditer(text, begin + int(max_chars * LAST_PART), limit)]
        if ends:
            return ends[-1]
    cut = boundary_before(text, limit)
    return cut if cut > begin else boundary_after(text, limit)


def _skip_blank(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _ends(pk: int, size: int, start: str, end: str, max_chars: int) -> Iterator[Chunk]:
    """The first chunk of a long text and its last, or all chunks of one that is hardly longer than both."""
    if size <= len(start):
        yield from _chunks(pk, start, 0, spans(start, max_chars))
        return
    first = spans(start, max_chars)[:1]
    yield from _chunks(pk, start, 0, first)
    # The last chunk begins between clusters, after a blank where there is one, and not inside the first.
    taken = first[0][1] if first else 0
    place = max(len(end) - max_chars, taken - (size - len(end)), 0)
    place = boundary_after(end, place)
    blank = _SPACE.search(end, place, place + MARGIN_CHARS)
    place = blank.end() if blank and place else place
    stop = len(end.rstrip())
    if place < stop:
        yield from _chunks(pk, end, size - len(end), [(place, stop)])


def _chunks(pk: int, text: str, offset: int, places: Iterable[tuple[int, int]]) -> Iterator[Chunk]:
    """The chunks at some places of a text that begins at `offset` of its message's."""
    secret = places_in(text)
    for begin, stop in places:
        yield Chunk(pk, offset + begin, text[begin:stop], without(text, secret, begin, stop))
