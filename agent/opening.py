"""The opening context of a generation: fixed lines, then what registered sources add. Rendered once, then frozen.

Sources live in each app's `context.py`, which is found at start-up.
"""

from collections.abc import Callable

from llm.wire import canonical
from threads.models import Generation, Thread
from threads.transcript import text_block

Source = Callable[[Thread, Generation], str | None]

_sources: list[tuple[int, str, Source]] = []


def source(order: int, name: str) -> Callable[[Source], Source]:
    """Register what a generation's opening says, in ascending `order`. A source returns None when it has nothing."""

    def decorate(function: Source) -> Source:
        _sources.append((order, name, function))
        _sources.sort(key=lambda entry: entry[:2])
        return function

    return decorate


def render(thread: Thread, generation: Generation) -> str:
    """The exact JSON of the opening's content blocks."""
    parts = [text for _order, _name, function in _sources if (text := function(thread, generation))]
    body = "\n\n".join(parts)
    return canonical([text_block(f"<framework>\n{body}\n</framework>")])
