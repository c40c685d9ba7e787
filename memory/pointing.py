"""Whether the result of a tool found the document that a pointer names."""

import re
from collections.abc import Iterator

from agent import registry
from agent.models import ToolCall
from threads.models import Message

_END = r"\s\"'“”‘’`<>()（）\[\]「」『』《》，。；：、,;"
_WITH_FOLDER = re.compile(rf"[^{_END}]*[/\\][^{_END}]*")
_FILE_NAME = re.compile(r"[\w-][\w.-]*\.[A-Za-z]\w{0,9}")


def paths_in(text: str) -> list[str]:
    """The paths and addresses that a pointer names, or else its file names."""
    whole = [found.rstrip(".!?/:") for found in _WITH_FOLDER.findall(text)]
    return [path for path in whole if re.search(r"\w", path)] or _FILE_NAME.findall(text)


def found_by(call: ToolCall, result: Message, text: str) -> bool:
    """Whether a tool that only reads found what a pointer names: its call or its result holds each of the paths, or the
    call the folder and the result the name."""
    tool = registry.get(call.tool)
    if tool is None or not tool.reads_only:
        return False
    asked = list(_strings(call.arguments))
    paths = paths_in(text)
    return bool(paths) and all(_holds(path, asked, result.text) for path in paths)


def _holds(path: str, asked: list[str], result: str) -> bool:
    if any(_stands_in(path, words) for words in (*asked, result)):
        return True
    folder, slash, name = path.rpartition("/")
    return bool(slash and name) and folder in {words.rstrip("/") for words in asked} and _stands_in(name, result)


def _stands_in(path: str, words: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_-]){re.escape(path)}(?![A-Za-z0-9_-]|\.\w)", words) is not None


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
