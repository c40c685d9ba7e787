"""From a tree of messages to conversations that can be read: pure arithmetic over ids.

An exported conversation is a tree: an edited question and an answer asked for again begin a branch. The way to the
present message is the conversation; every other end of the tree is a branch, which begins where it departs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """Messages that follow one another, and the one before them (None: they begin a conversation)."""

    departs_from: str | None
    nodes: tuple[str, ...]


def walk(parents: Mapping[str, str | None], children: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """The ids of a tree, each after its parent, siblings in the order that `children` gives them, else in that of
    `parents`. A node whose parent is unknown begins a tree of its own; nodes that form a circle are left out."""
    below: dict[str | None, list[str]] = {}
    for node, parent in parents.items():
        below.setdefault(parent if parent in parents else None, []).append(node)
    for node, wanted in (children or {}).items():
        if node in below:
            rank = {child: number for number, child in enumerate(wanted)}
            below[node].sort(key=lambda child: rank.get(child, len(rank)))
    order: list[str] = []
    waiting = list(reversed(below.get(None, [])))
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting.extend(reversed(below.get(node, [])))
    return order


def segments(parents: Mapping[str, str | None], current: str | None, known: Collection[str] = ()) -> list[Segment]:
    """A tree (each node after its parent) as segments, none of which holds a node of another or a known one.

    The first leads to `current`, or to the last leaf without one; then one for each further leaf, in order. Together
    they hold every node that is not known and does not stand above a known one. A segment departs from a node of an
    earlier segment or from a known one.
    """
    covered: set[str] = set()
    for node in known:
        above: str | None = node if node in parents else None
        while above is not None and above not in covered:
            covered.add(above)
            above = parents[above]
    inner = set(parents.values())
    leaves = [node for node in parents if node not in inner]
    first = current if current in parents else (leaves[-1] if leaves else None)
    found: list[Segment] = []
    for leaf in [first, *leaves]:
        way: list[str] = []
        at = leaf
        while at is not None and at not in covered:
            covered.add(at)
            way.append(at)
            at = parents[at]
        if way:
            found.append(Segment(at, tuple(reversed(way))))
    return found
