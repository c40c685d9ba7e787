"""Which contexts were told of facts: those that were briefed with them, and those whose opening or summary says their
words, as that of a branch does, or of a context after the one that was briefed."""

from collections.abc import Sequence

from django.db.models import Q, QuerySet

from memory.models import Fact, FactUse
from threads.models import Generation

# Of so few the database looks for the words. With more, each text is read once, however many they are.
FEW = 20
PIECE_CHARS = 8
READ_AT_ONCE = 50


def of(facts: Sequence[Fact], generations: QuerySet[Generation]) -> set[int]:
    """The ids of those of some generations that were told of any of the facts, all of one owner."""
    pks = [fact.pk for fact in facts]
    briefed = FactUse.objects.filter(fact__in=pks, generation__isnull=False).values("generation")
    told = set(generations.filter(pk__in=briefed).values_list("pk", flat=True))
    words = list(dict.fromkeys(fact.text for fact in facts))
    others = generations.exclude(pk__in=told)
    return told | (_by_database(words, others) if len(words) <= FEW else _by_reading(words, others))


def _by_database(words: Sequence[str], generations: QuerySet[Generation]) -> set[int]:
    says = Q(pk__in=[])
    for text in words:
        says |= Q(summary__contains=text) | Q(summary_before__contains=text) | Q(opening__contains=_in_wire(text))
    return set(generations.filter(says).values_list("pk", flat=True))


def _by_reading(words: Sequence[str], generations: QuerySet[Generation]) -> set[int]:
    as_said, as_sent = _Words(words), _Words([_in_wire(text) for text in words])
    rows = generations.values_list("pk", "opening", "summary", "summary_before").order_by("pk")
    return {
        pk
        for pk, opening, summary, before in rows.iterator(chunk_size=READ_AT_ONCE)
        if as_sent.stand_in(opening or "") or as_said.stand_in(summary or "") or as_said.stand_in(before or "")
    }


class _Words:
    """Many texts that are looked for in another one at once: a tree by pieces of PIECE_CHARS, so that it matters little
    how many they are or how many begin alike. `ends` has what is left of a text after its whole pieces, by length."""

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.after: dict[str, _Words] = {}
        self.ends: dict[int, set[str]] = {}
        for text in words:
            node, left = self, text
            while len(left) >= PIECE_CHARS:
                node, left = node.after.setdefault(left[:PIECE_CHARS], _Words()), left[PIECE_CHARS:]
            node.ends.setdefault(len(left), set()).add(left)

    def stand_in(self, text: str) -> bool:
        """Whether any of them does."""
        return any(self._begin_at(text, place) for place in range(len(text)))

    def _begin_at(self, text: str, place: int) -> bool:
        node: _Words | None = self
        while node is not None:
            if any(text[place : place + length] in ends for length, ends in node.ends.items()):
                return True
            node, place = node.after.get(text[place : place + PIECE_CHARS]), place + PIECE_CHARS
        return False


def _in_wire(text: str) -> str:
    """Words as they stand in the JSON of an opening."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
