"""One rule for content that crosses threads: tasks, results, search, memory and quotes all ask here.

A thread has a scope (open, or isolated on an island) and, independently, a category or none. Isolated content
stays on its island: the isolated thread at the root, its branches, its tasks. Content of category C goes to
category C alone. Open content without a category goes anywhere. Owners never mix, before any of this.
"""

from dataclasses import dataclass
from typing import Self

from django.db.models import Q

from threads.models import Thread


@dataclass(frozen=True)
class Level:
    """Where content may go. `island_id` is the isolated thread at the root, None for open content."""

    scope: str = Thread.Scope.OPEN
    island_id: int | None = None
    category: str = ""

    @classmethod
    def of_thread(cls, thread: Thread) -> Self:
        return cls(thread.scope, thread.island_id, thread.category)


@dataclass(frozen=True)
class Viewer:
    """Whoever is about to read: a thread, or its owner outside any thread (`thread_id` None)."""

    owner_id: int
    thread_id: int | None
    level: Level

    @classmethod
    def of_thread(cls, thread: Thread) -> Self:
        return cls(thread.owner_id, thread.pk, Level.of_thread(thread))


def can_deliver(source: Level, target: Level) -> bool:
    """Whether scopes let content pass: an isolated one's stays on its island."""
    if source.scope == Thread.Scope.OPEN:
        return True
    return target.scope == Thread.Scope.ISOLATED and target.island_id == source.island_id


def category_readable(target: str, source: str) -> bool:
    """Whether a reader of category `target` may read content of category `source`."""
    return source in ("", target)


def can_flow(source: Level, target: Level) -> bool:
    """Whether content at `source` may go to `target`, both of one owner."""
    return can_deliver(source, target) and category_readable(target.category, source.category)


def needs_confirm(source: Level, target: Level) -> bool:
    """Whether a person must confirm handing content over: exactly when it would not flow by itself."""
    return not can_flow(source, target)


def thread_filter(viewer: Viewer, prefix: str = "") -> Q:
    """The same rule in SQL: threads whose content may flow to the viewer. `prefix` leads to the thread from
    the rows that are filtered, for example `"thread__"`."""
    scope = Q(**{f"{prefix}scope": Thread.Scope.OPEN})
    if viewer.level.scope == Thread.Scope.ISOLATED:
        scope |= Q(**{f"{prefix}island_id": viewer.level.island_id})
    categories = {"", viewer.level.category}
    return Q(**{f"{prefix}owner_id": viewer.owner_id}) & scope & Q(**{f"{prefix}category__in": sorted(categories)})


def message_filter(viewer: Viewer) -> Q:
    """Messages whose content may flow to the viewer."""
    return Q(owner_id=viewer.owner_id) & thread_filter(viewer, "thread__")
