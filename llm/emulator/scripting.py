"""Answers and faults queued by a test, taken by the first request that each of them fits."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from llm.emulator.request_shape import MessagesRequest

FOREVER = -1
MATCH_KEYS = frozenset({"contains", "any_contains", "model", "tool"})

Item = TypeVar("Item")


@dataclass(frozen=True)
class Match:
    """Which requests something is meant for. Everything given must hold; nothing given fits every request.

    contains: in the text of the last turn, tool results included. any_contains: in some user turn. model:
    wire id. tool: a tool of that name is offered.
    """

    contains: str | None = None
    any_contains: str | None = None
    model: str | None = None
    tool: str | None = None

    @classmethod
    def from_dict(cls, said: dict[str, Any] | None) -> "Match":
        """Raises ValueError that names an unknown key."""
        unknown = set(said or {}) - MATCH_KEYS
        if unknown:
            raise ValueError(f"unknown match keys: {', '.join(sorted(unknown))}")
        return cls(**(said or {}))

    def fits(self, request: MessagesRequest) -> bool:
        return (
            (self.model is None or self.model == request.model.id)
            and (self.tool is None or any(tool["name"] == self.tool for tool in request.tools))
            and (self.contains is None or self.contains in request.last_user_text())
            and (self.any_contains is None or request.any_user_text_contains(self.any_contains))
        )


@dataclass
class _Queued(Generic[Item]):
    item: Item
    match: Match
    times: int


@dataclass
class Queue(Generic[Item]):
    """Things waiting for requests, in order. `times` counts down; FOREVER never ends."""

    _waiting: list[_Queued[Item]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: Item, match: Match, times: int = 1) -> None:
        """Raises ValueError when `times` is neither positive nor FOREVER."""
        if times < 1 and times != FOREVER:
            raise ValueError("times must be at least 1, or -1 for every request")
        self._waiting.append(_Queued(item, match, times))

    def take(self, request: MessagesRequest, also: Callable[[Item], bool] = lambda item: True) -> Item | None:
        """The first item that fits `request` and `also`, used up once; None when nothing fits."""
        for place, queued in enumerate(self._waiting):
            if also(queued.item) and queued.match.fits(request):
                if queued.times != FOREVER:
                    queued.times -= 1
                if queued.times == 0:
                    del self._waiting[place]
                return queued.item
        return None

    def clear(self) -> None:
        self._waiting.clear()
