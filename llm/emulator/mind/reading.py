"""What the rule-based model sees of a request: rows with roles, message ids and dates, and what is being asked."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from llm.emulator.request_shape import MessagesRequest, block_text

# A line that begins a rendered row, such as `[m:12] user, generation 3, 2026-11-30 05:34 UTC:` or `m:12 user: words`.
_TAG_LINE = re.compile(r"^[ \t]*[-*>]?[ \t]*([\[(]?)m:(\d+)\b(.*)$", re.MULTILINE)
_ROLE = re.compile(r"\b(user|assistant|tool result|tool|event)\b", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2})?")
_ROW_END = re.compile(r"\n\s*\n(?=Older messages|This is the beginning|Nothing older|[<#])")
_CHANNEL = re.compile(r"^channel: *(\S+)", re.MULTILINE)
_KNOWN = re.compile(r"^[ \t]*[-*>]?[ \t]*[\[(]?[fp]:\d+\b.*$", re.MULTILINE)
_QUOTE = re.compile(r"message m:(\d+)\).*?<quote>\n(.*)\n</quote>", re.DOTALL)
FRAMEWORK = "<framework>"


@dataclass(frozen=True)
class Row:
    """One piece of conversation. role: user, assistant, tool, framework, or unknown for a rendered row without one."""

    role: str
    text: str
    message_id: int | None = None
    date: str | None = None
    tool: str | None = None
    is_error: bool = False

    def mark(self) -> str:
        """How an answer points at this row: ` (m:12, 2026-11-30 05:34)`, or nothing."""
        parts = [f"m:{self.message_id}"] if self.message_id is not None else []
        parts += [self.date] if self.date else []
        return f" ({', '.join(parts)})" if parts else ""


@dataclass(frozen=True)
class Call:
    """A tool call of the present exchange and the row of its result."""

    name: str
    arguments: dict[str, Any]
    result: Row


@dataclass
class Conversation:
    """A request as the rules read it.

    `asked`: the newest message with words of the user's, or a newer note of the framework's. `earlier`: every row
    before it. `calls`: tool calls answered since, oldest first; `rounds` counts the answers they came in.
    """

    request: MessagesRequest
    earlier: list[Row] = field(default_factory=list)
    asked: str = ""
    asked_by_framework: bool = False
    calls: list[Call] = field(default_factory=list)
    rounds: int = 0
    notes: list[str] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)

    @cached_property
    def tools(self) -> dict[str, dict[str, Any]]:
        """Input schemas of the tools that may be called, by name."""
        if self.request.tool_choice["type"] == "none":
            return {}
        return {tool["name"]: tool["input_schema"] for tool in self.request.tools}

    @cached_property
    def channel(self) -> str | None:
        """The channel that the opening context names."""
        for row in self.earlier:
            found = _CHANNEL.search(row.text) if row.role == "framework" else None
            if found:
                return found.group(1)
        found = _CHANNEL.search(self.asked)
        return found.group(1) if found else None

    @cached_property
    def shown(self) -> list[Row]:
        """Rows rendered inside the newest words, with their ids."""
        return rendered_rows(self.asked)

    @cached_property
    def known(self) -> str:
        """Lines of the newest words that say what memory holds already."""
        return "\n".join(_KNOWN.findall(self.asked))

    @cached_property
    def is_first(self) -> bool:
        """Whether the model has said nothing yet."""
        return all(row.role != "assistant" for row in self.earlier)


def read(request: MessagesRequest) -> Conversation:
    """Read `request`."""
    conversation = Conversation(request)
    asked_at, asked_message, conversation.asked_by_framework = _find_asked(request)
    names: dict[str, tuple[str, dict[str, Any]]] = {}
    words: list[str] = []
    for place, turn in enumerate(request.turns):
        if turn.role == "assistant" and place > asked_at:
            conversation.rounds += 1
        for number, _, block in turn.blocks:
            if block["type"] == "tool_use":
                names[block["id"]] = (block["name"], block["input"])
                conversation.commands.append((block["name"], json.dumps(block["input"], ensure_ascii=False)))
            row = _row(block, turn.role, names)
            if row is None:
                continue
            if row.role == "tool" and place > asked_at:
                name, arguments = names[block["tool_use_id"]]
                conversation.calls.append(Call(name, arguments, row))
            elif row.role == "framework" and place >= asked_at:
                conversation.notes.append(row.text)
            if number == asked_message and row.role == ("framework" if conversation.asked_by_framework else "user"):
                words.append(row.text)
            else:
                conversation.earlier.append(row)
    conversation.asked = "\n".join(words)
    return conversation


def _find_asked(request: MessagesRequest) -> tuple[int, int, bool]:
    """(index of the turn that asks, index of its message that does, whether that is the framework's).

    The newest words of the user's own; newer words of the framework, unless they came with tool results.
    """
    for place in range(len(request.turns) - 1, -1, -1):
        turn = request.turns[place]
        if turn.role != "user":
            continue
        kinds = [(_kind(block), number) for number, _, block in turn.blocks]
        own = [number for kind, number in kinds if kind == "user"]
        if own:
            return place, own[-1], False
        if all(kind != "tool" for kind, _ in kinds):
            return place, kinds[-1][1], True
    last = request.turns[-1].blocks[-1][0]
    return len(request.turns) - 1, last, True


def _kind(block: dict[str, Any]) -> str:
    if block["type"] == "tool_result":
        return "tool"
    return "framework" if block_text(block).lstrip().startswith(FRAMEWORK) else "user"


def _row(block: dict[str, Any], role: str, names: dict[str, tuple[str, dict[str, Any]]]) -> Row | None:
    text = block_text(block)
    if not text:
        return None
    if role == "assistant":
        return Row("assistant", text)
    kind = _kind(block)
    if kind == "tool":
        name = names.get(block["tool_use_id"], ("", {}))[0]
        return Row("tool", text, tool=name, is_error=bool(block.get("is_error")))
    if kind == "framework":
        if quoted := _QUOTE.search(text):
            return Row("unknown", quoted.group(2), message_id=int(quoted.group(1)))
        return Row("framework", re.sub(r"</?framework>", "", text).strip())
    return Row("user", text)


def rendered_rows(text: str) -> list[Row]:
    """The rows that `text` shows with `m:` tags; the JSON of a page of messages is read too."""
    return list(_json_rows(text)) or list(_tagged_rows(text))


def _tagged_rows(text: str) -> Iterator[Row]:
    tags = list(_TAG_LINE.finditer(text))
    for place, tag in enumerate(tags):
        end = tags[place + 1].start() if place + 1 < len(tags) else len(text)
        meta, first = _split_tag(tag.group(1), tag.group(3))
        body = f"{first}\n{text[tag.end() : end]}"
        known = _KNOWN.search(body)
        body = _ROW_END.split(body[: known.start()] if known else body)[0].strip()
        role = _ROLE.search(meta)
        date = _DATE.search(meta)
        if body:
            yield Row(
                {"tool result": "tool"}.get(name := role.group(1).lower(), name) if role else "unknown",
                body,
                message_id=int(tag.group(2)),
                date=date.group().replace("T", " ") if date else None,
            )


def _split_tag(bracket: str, rest: str) -> tuple[str, str]:
    """(what a tag line says about its row, the words that follow on the same line)."""
    meta = ""
    if bracket:
        inside, closing, after = rest.partition("]" if bracket == "[" else ")")
        if closing:
            meta, rest = inside, after
    if rest.rstrip().endswith((":", "：")) or not rest.strip():
        return f"{meta} {rest}", ""
    role = re.match(
        r"[\s,;|]*(?:user|assistant|tool result|tool|event)\b[^:\n]{0,80}:(?:\d\d[^:\n]{0,20}:)?", rest, re.I
    )
    if role:
        return f"{meta} {role.group()}", rest[role.end() :].strip()
    return meta, rest.lstrip(" :,|-").strip()


def _json_rows(text: str) -> Iterator[Row]:
    """Rows of a JSON answer: objects with an id and a text, wherever they stand."""
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return
    try:
        said = json.loads(text)
    except ValueError:
        return
    yield from _json_objects(said)


def _json_objects(said: Any) -> Iterator[Row]:
    if isinstance(said, list):
        for one in said:
            yield from _json_objects(one)
    elif isinstance(said, dict):
        raw_id = str(said.get("message_id", said.get("id", ""))).removeprefix("m:")
        words = said.get("text") or said.get("window") or said.get("content")
        if raw_id.isdigit() and isinstance(words, str):
            date = _DATE.search(str(said.get("created") or said.get("date") or ""))
            yield Row(
                str(said.get("role", "unknown")),
                words,
                message_id=int(raw_id),
                date=date.group().replace("T", " ") if date else None,
            )
            return
        for one in said.values():
            yield from _json_objects(one)


def older_than(text: str) -> int | None:
    """The `before` with which a page of history says that it can be read on; None at its end."""
    found = re.search(r"\b(?:next_)?before\b[\"']?\s*[=:]\s*[\"']?(?:m:)?(\d+)", text)
    return int(found.group(1)) if found else None
