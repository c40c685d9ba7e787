"""Excerpts: where a match stands in the words as they were written, and the window around it."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from maxclaw.text import boundary_after, boundary_before

WINDOW_MAX_CHARS = 800
LEAD_CHARS = 200  # shown before the match
PIECE_CHARS = 1_024
MATCHES_PER_NEEDLE = 100
ELLIPSIS = "…"


@dataclass(frozen=True)
class Window:
    """`text` is what is shown of characters `begin` to `end` of the original, with an ellipsis where it is cut."""

    text: str
    begin: int
    end: int
    is_whole: bool


def find_all(folded: str, needle: str) -> list[int]:
    """Where a needle begins in folded text, without overlaps; at most MATCHES_PER_NEEDLE places."""
    places: list[int] = []
    place = folded.find(needle)
    while place >= 0 and len(places) < MATCHES_PER_NEEDLE:
        places.append(place)
        place = folded.find(needle, place + len(needle))
    return places


class Folded:
    """Text as literal search compares it, and the way back: folding changes lengths (ß, İ, ligatures, marks)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded, self._is_even = _fold(text)

    def origin(self, begin: int, end: int) -> tuple[int, int]:
        """The part of the original that folded characters `begin` to `end` come from, in whole grapheme clusters
        where folding changed any length."""
        if self._is_even:
            return begin, end
        first = self._clusters_at(begin)
        last = self._clusters_at(max(end - 1, begin))
        return first[0], max(last[1], first[1])

    def _clusters_at(self, place: int) -> tuple[int, int]:
        """The cluster that a folded character comes from. Folding works on grapheme clusters one by one, so cut between
        them the pieces of a text fold as the whole does."""
        begin = at = 0
        for size in (PIECE_CHARS, PIECE_CHARS // 32, 1):
            while begin < len(self.text):
                end = boundary_after(self.text, begin + size)
                folded, is_even = _fold(self.text[begin:end])
                if at + len(folded) > place:
                    if is_even:
                        return begin + place - at, begin + place - at + 1
                    break
                begin, at = end, at + len(folded)
        return begin, boundary_after(self.text, begin + 1)


def _fold(text: str) -> tuple[str, bool]:
    """The same as `threads.transcript.fold`, and whether every character became exactly one, where it stood: folding
    the case removes none, so an equal length says that none became two, and composing must have changed nothing."""
    composed = unicodedata.normalize("NFC", text)
    cased = composed.casefold()
    folded = unicodedata.normalize("NFC", cased)
    return folded, composed == text and len(cased) == len(text) and folded == cased


def window(text: str, begin: int, end: int, size: int) -> Window:
    """At most `size` characters of the text, which begin about LEAD_CHARS before the match, fewer where the window is
    small, and are cut between grapheme clusters; the whole text where it fits."""
    if len(text) <= size:
        return Window(text, 0, len(text), is_whole=True)
    room = size - 2 * len(ELLIPSIS)
    lead = min(LEAD_CHARS, room // 4, max(room - (end - begin), 0))
    start = boundary_before(text, max(begin - lead, 0))
    stop = boundary_before(text, min(start + room, len(text)))
    if stop <= start:
        stop = start
    shown = (ELLIPSIS if start else "") + text[start:stop] + (ELLIPSIS if stop < len(text) else "")
    return Window(shown, start, stop, is_whole=False)


def densest(places: Sequence[tuple[int, int, float]], span: int) -> tuple[tuple[int, int], float]:
    """Of matches (place, needle's number, its weight) in order: where a window of `span` characters holds the most
    weight of different needles, as the first match in it with its needle's number, and that weight. The first such
    window among equals."""
    best, best_weight = (places[0][0], places[0][1]), 0.0
    held: dict[int, int] = {}
    weights = {number: weight for _place, number, weight in places}
    total, last = 0.0, 0
    for first, (place, number, weight) in enumerate(places):
        while last < len(places) and (places[last][0] < place + span or last <= first):
            entering = places[last][1]
            held[entering] = held.get(entering, 0) + 1
            if held[entering] == 1:
                total += weights[entering]
            last += 1
        if total > best_weight + 1e-9:
            best, best_weight = (place, number), total
        held[number] -= 1
        if not held[number]:
            total -= weight
    return best, best_weight
