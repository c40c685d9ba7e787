"""What the steward wrote beside what shadows proposed: pure functions over plain rows, which read no database.

Each measure stands for itself and in both directions; none is ever merged with another. Equal words miss a rewording;
shared evidence makes neighbours, not equals; pairs by meaning are to be looked at, not the truth.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

# Two of these in one request hold the judging model's attention; more are asked for piece by piece.
GROUP_SIDE_MAX = 80

Pair = tuple[str, str]


class PairingRefused(Exception):
    """A judge of meaning named something that it was not shown. Its other pairs are worth nothing then."""


@dataclass(frozen=True)
class Item:
    """A fact of the steward's (key `f:12`) or a proposal of a shadow's (`p:12`), never of an isolated conversation.
    `sources` are the evidence pointers (`m:5`, `g:2`), each of one conversation, so that what shares one is of the same
    conversation."""

    key: str
    owner_id: int
    text: str
    sources: frozenset[str] = frozenset()
    categories: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Coverage:
    """Of `total` items of one side, how many have a counterpart on the other."""

    covered: int
    total: int

    @property
    def share(self) -> float | None:
        return self.covered / self.total if self.total else None


@dataclass(frozen=True)
class Matched:
    """(steward key, shadow key) pairs under one measure, and the coverage of each side by the other."""

    pairs: list[Pair]
    steward_by_shadow: Coverage
    shadow_by_steward: Coverage


@dataclass(frozen=True)
class Group:
    """Items of one person and one set of categories, for a model that may read those categories."""

    owner_id: int
    categories: frozenset[str]
    steward: list[Item] = field(default_factory=list)
    shadow: list[Item] = field(default_factory=list)


def normalised(text: str) -> str:
    """The text after NFKC, without white space and punctuation: what equal words are compared by."""
    plain = unicodedata.normalize("NFKC", text)
    return "".join(char for char in plain if not char.isspace() and not unicodedata.category(char).startswith("P"))


def exact(steward: Sequence[Item], shadow: Sequence[Item]) -> Matched:
    """Pairs with equal words of the same person. Words of punctuation alone equal nothing."""

    def keys(item: Item) -> set[tuple[int, str]]:
        words = normalised(item.text)
        return {(item.owner_id, words)} if words else set()

    return matched(_joined(steward, shadow, keys), steward, shadow)


def by_evidence(steward: Sequence[Item], shadow: Sequence[Item]) -> Matched:
    """Neighbours: pairs of the same person whose evidence has a pointer in common."""

    def keys(item: Item) -> set[tuple[int, str]]:
        return {(item.owner_id, source) for source in item.sources}

    return matched(_joined(steward, shadow, keys), steward, shadow)


def matched(pairs: Iterable[Pair], steward: Sequence[Item], shadow: Sequence[Item]) -> Matched:
    """The coverage of each side by these pairs."""
    listed = sorted(set(pairs), key=lambda pair: (_order(pair[0]), _order(pair[1])))
    lefts, rights = {left for left, _right in listed}, {right for _left, right in listed}
    return Matched(
        listed,
        Coverage(sum(item.key in lefts for item in steward), len(steward)),
        Coverage(sum(item.key in rights for item in shadow), len(shadow)),
    )


def groups(steward: Iterable[Item], shadow: Iterable[Item]) -> list[Group]:
    """The items in groups for judging their meaning. A group of which one side is empty has no piece to be asked."""
    found: dict[tuple[int, tuple[str, ...]], Group] = {}
    for items, side in ((steward, "steward"), (shadow, "shadow")):
        for item in items:
            key = (item.owner_id, tuple(sorted(item.categories)))
            group = found.setdefault(key, Group(item.owner_id, item.categories))
            getattr(group, side).append(item)
    return [group for _key, group in sorted(found.items())]


def pieces(group: Group, most: int = GROUP_SIDE_MAX) -> list[Group]:
    """The group in pieces of at most `most` items a side, so that each two items meet in exactly one."""
    return [
        Group(group.owner_id, group.categories, group.steward[left : left + most], group.shadow[right : right + most])
        for left in range(0, len(group.steward), most)
        for right in range(0, len(group.shadow), most)
    ]


def pairs_of(group: Group, indices: Iterable[tuple[int, int]]) -> list[Pair]:
    """The pairs that a judge named by (steward index, shadow index), from 0. Raises PairingRefused when an index is
    none of the group's: a pair is never invented."""
    pairs = []
    for left, right in indices:
        if not (0 <= left < len(group.steward) and 0 <= right < len(group.shadow)):
            raise PairingRefused(
                f"The judge of meaning named the pair {left}, {right}, of {len(group.steward)} and {len(group.shadow)}."
            )
        pairs.append((group.steward[left].key, group.shadow[right].key))
    return pairs


@dataclass(frozen=True)
class Examined:
    """Of messages that were due in generations that ended in one way: how many were read once, never, or again."""

    once: int = 0
    never: int = 0
    again: int = 0

    @property
    def share(self) -> float | None:
        """Read exactly once, of all; 1 is what is wanted."""
        total = self.once + self.never + self.again
        return self.once / total if total else None


@dataclass(frozen=True)
class Reading:
    """A completed run: it read what stood between `after` and `through` of its generation."""

    generation_id: int
    after: int
    through: int


def times_read(messages: Iterable[tuple[int, int]], readings: Iterable[Reading]) -> list[int]:
    """How often each (generation id, message id) was read."""
    by_generation: dict[int, list[Reading]] = defaultdict(list)
    for reading in readings:
        by_generation[reading.generation_id].append(reading)
    return [
        sum(reading.after < message_id <= reading.through for reading in by_generation[generation_id])
        for generation_id, message_id in messages
    ]


def examined(times: Sequence[int]) -> Examined:
    """Messages by how often they were read."""
    return Examined(times.count(1), times.count(0), sum(number > 1 for number in times))


def _joined(
    steward: Iterable[Item], shadow: Iterable[Item], keys: Callable[[Item], set[tuple[int, str]]]
) -> list[Pair]:
    by_key: dict[tuple[int, str], list[str]] = defaultdict(list)
    for item in shadow:
        for key in keys(item):
            by_key[key].append(item.key)
    return [(item.key, other) for item in steward for key in keys(item) for other in by_key.get(key, ())]


def _order(key: str) -> tuple[str, int]:
    kind, _colon, number = key.partition(":")
    return kind, int(number)
