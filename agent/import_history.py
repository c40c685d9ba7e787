"""A conversation of an export, whichever service wrote it: a tree of messages, ready to become rows."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from accounts.days import in_calendar, moment_of
from agent.import_keys import digest_of, key_of
from maxclaw.sentences import Sentence, Told
from maxclaw.sentences import sentence as _
from maxclaw.text import head, visible, visible_json
from threads.models import Message

TOOL_NAME_MAX_CHARS = 128
SHOWN_MAX_CHARS = 60
ID_MAX_CHARS = 150
NO_RESULT = "(The export holds no result of this call.)"
# What a model takes as the name of a tool.
_NAME_SIGNS = re.compile(r"[^a-zA-Z0-9_-]")


class Damaged(Told, ValueError):
    """A conversation, or one message of it, that cannot be read. The sentence is for the person."""


@dataclass(frozen=True)
class Call:
    """One call of a tool. `tool` is its name as the export gives it."""

    call_id: str
    tool: str
    arguments: dict[str, Any]

    @property
    def wire_name(self) -> str:
        """The name as a model takes it."""
        return _NAME_SIGNS.sub("_", self.tool)


@dataclass(frozen=True)
class Piece:
    """What becomes one row. A tool's piece answers the call `answers`; an assistant's may hold calls."""

    role: Message.Role
    text: str
    created: datetime
    thinking: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""
    is_error: bool = False
    model: str = ""


@dataclass(frozen=True)
class Node:
    """One message of the export. `pieces` are the rows it becomes; `answer` is the one row that it becomes instead
    right after the call which it answers, the last of the message before it."""

    id: str
    parent: str | None
    pieces: tuple[Piece, ...]
    answer: Piece | None = None

    @property
    def created(self) -> datetime:
        return self.pieces[0].created

    @property
    def open_calls(self) -> tuple[Call, ...]:
        """Calls that a following message may answer."""
        answered = {piece.answers for piece in self.pieces}
        return tuple(call for call in self.pieces[-1].calls if call.call_id not in answered)


@dataclass
class History:
    """A conversation: its messages by id, each after the one before it, and the present one. `damaged` are sentences
    about messages that were left out."""

    format: str
    source: str
    title: str = ""
    archived: bool = False
    nodes: dict[str, Node] = field(default_factory=dict)
    current: str | None = None
    damaged: list[Sentence | str] = field(default_factory=list)

    @property
    def parents(self) -> dict[str, str | None]:
        return {node.id: node.parent for node in self.nodes.values()}

    @property
    def first_words(self) -> str:
        """The user's first words, else anybody's."""
        pieces = [piece for node in self.nodes.values() for piece in node.pieces if piece.text.strip()]
        users = [piece for piece in pieces if piece.role == Message.Role.USER]
        return (users or pieces)[0].text if pieces else ""

    def key(self, node_id: str) -> str:
        """What makes the message the same one in every later import."""
        return key_of(digest_of(["node", self.format, self.source, node_id]))

    def call_id(self, node_id: str, number: int) -> str:
        """An id for a call, one that every model takes and no other call has."""
        return "toolu_" + key_of(digest_of(["call", self.format, self.source, node_id, number]))


def call_of(call_id: str, name: Any, arguments: Any) -> Call:
    """A call as rows hold it: a name that is not blank, arguments that JSON and PostgreSQL take."""
    tool = head(" ".join(words(name).split()), TOOL_NAME_MAX_CHARS) or "tool"
    if not isinstance(arguments, dict):
        arguments = {} if arguments is None else {"input": arguments}
    return Call(call_id, tool, visible_json(_finite(arguments)))


def words(value: Any) -> str:
    """Text that can be stored; blank for anything that is no text."""
    return visible(value) if isinstance(value, str) else ""


def paragraphs(*parts: str) -> str:
    """Texts one below the other, blank ones left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def note(kind: str, name: str = "", content: str = "") -> str:
    """What stands in the text for something that came with a message: its kind and name, then what it says."""
    name = head(" ".join(words(name).split()), 200)
    label = f"[{kind}: {name}]" if name else f"[{kind}]"
    return f"{label}\n{content}" if content.strip() else label


def identifier(value: Any, what: str) -> str:
    """A stable id. Raises Damaged."""
    found = words(value).strip()
    if not found:
        raise Damaged(_("Its %(what)s is missing.") % {"what": what})
    if len(found) > ID_MAX_CHARS:
        raise Damaged(_("Its %(what)s has %(count)s characters.") % {"what": what, "count": f"{len(found):,}"})
    return found


def moment(value: Any) -> datetime | None:
    """A time as exports write it, seconds since 1970 or ISO 8601; None for what is none that a calendar shows."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0:
            return in_calendar(datetime.fromtimestamp(value, UTC))
        if isinstance(value, str) and value:
            return moment_of(value)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def shown(value: Any) -> str:
    """A short look at a wrong value."""
    text = visible(repr(value))
    return text if len(text) <= SHOWN_MAX_CHARS else f"{head(text, SHOWN_MAX_CHARS)}…"


def children_of(parents: Mapping[str, str | None]) -> dict[str | None, list[str]]:
    """The ids below each id, in order."""
    below: dict[str | None, list[str]] = {}
    for node, parent in parents.items():
        below.setdefault(parent, []).append(node)
    return below


def _finite(value: Any) -> Any:
    """JSON without the numbers that are none (NaN, infinity): they become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value
