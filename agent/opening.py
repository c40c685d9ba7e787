"""The opening context of a generation: fixed lines, then what registered sources add. Rendered once, then frozen.

Sources live in each app's `context.py`, which is found at start-up. An opening is rendered under the thread's lock, in
the transaction that makes or first uses it. A source that needs more time than that (a server is asked) registers a
function that looks ahead, before the lock; under it the source checks whether what it was given still holds.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from llm.wire import canonical
from threads.models import Generation, Thread
from threads.transcript import text_block

logger = logging.getLogger("maxclaw.agent")

# Nobody's first words wait longer for what an opening may add.
AHEAD_SECONDS = 5.0

Source = Callable[[Thread, Generation], str | None]
# What a generation opens for: the thread, and the summary of the generation before (None: the first message counts).
LookAhead = Callable[[int, str | None], Awaitable[Any]]
SourceAhead = Callable[[Thread, Generation, Any], str | None]
Ahead = Mapping[str, Any]


@dataclass(frozen=True)
class _Entry:
    order: int
    name: str
    write: Callable[[Thread, Generation, Ahead], str | None]


_sources: list[_Entry] = []
_ahead: dict[str, LookAhead] = {}


def source(order: int, name: str) -> Callable[[Source], Source]:
    """Register what a generation's opening says, in ascending `order`. A source returns None when it has nothing."""

    def decorate(function: Source) -> Source:
        _add(_Entry(order, name, lambda thread, generation, _given: function(thread, generation)))
        return function

    return decorate


def source_ahead(order: int, name: str, look: LookAhead) -> Callable[[SourceAhead], SourceAhead]:
    """The same for a source that gets what `look` found before the lock; it is not asked where nothing was found. It
    may write rows that belong to the generation."""

    def decorate(function: SourceAhead) -> SourceAhead:
        def write(thread: Thread, generation: Generation, given: Ahead) -> str | None:
            return function(thread, generation, given[name]) if given.get(name) is not None else None

        _add(_Entry(order, name, write))
        _ahead[name] = look
        return function

    return decorate


async def look_ahead(thread_id: int, summary: str | None) -> Ahead:
    """What the sources find before the lock. One that fails or takes too long adds nothing: an opening never fails for
    that."""
    names = list(_ahead)
    found = await asyncio.gather(*(_look(name, _ahead[name], thread_id, summary) for name in names))
    return dict(zip(names, found, strict=True))


def render(thread: Thread, generation: Generation, given: Ahead | None = None) -> str:
    """The exact JSON of the opening's content blocks. `given` is what `look_ahead` found."""
    parts = [text for entry in _sources if (text := entry.write(thread, generation, given or {}))]
    body = "\n\n".join(parts)
    return canonical([text_block(f"<framework>\n{body}\n</framework>")])


def _add(entry: _Entry) -> None:
    _sources.append(entry)
    _sources.sort(key=lambda other: (other.order, other.name))


async def _look(name: str, look: LookAhead, thread_id: int, summary: str | None) -> Any:
    try:
        async with asyncio.timeout(AHEAD_SECONDS):
            return await look(thread_id, summary)
    except TimeoutError:
        logger.warning("The opening of thread %s goes without its %s: it took too long.", thread_id, name)
    except Exception:
        logger.exception("The opening of thread %s goes without its %s.", thread_id, name)
    return None
