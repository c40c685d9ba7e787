"""One conversation of a Claude data export.

| in the export | here |
|---|---|
| `chat_messages` with `parent_message_uuid` | a tree; without parents, one after the other |
| `current_leaf_message_uuid` | the present message, else the last one |
| an answer's `content`: text, tool_use, tool_result | rounds: an answer with its calls, then their results, and so on |
| `thinking` | for the reader alone |
| `attachments` | their text, after the words that they came with |
| `files` | a note with their name: the export does not hold them |
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from agent.import_history import (
    NO_RESULT,
    Call,
    Damaged,
    History,
    Node,
    Piece,
    call_of,
    identifier,
    moment,
    note,
    paragraphs,
    shown,
    words,
)
from agent.import_tree import walk
from maxclaw.sentences import sentence as _
from threads.models import Message

FORMAT = "claude"
PICTURE_ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".bmp", ".svg"}
SENDERS = {"human": Message.Role.USER, "assistant": Message.Role.ASSISTANT}


def parse(entry: Mapping[str, Any]) -> History:
    """The conversation in an entry with `chat_messages`. Raises Damaged."""
    history = History(
        format=FORMAT, source=identifier(entry.get("uuid") or entry.get("id"), "id"), title=words(entry.get("name"))
    )
    messages = entry.get("chat_messages")
    if not isinstance(messages, list):
        raise Damaged(_("Its messages (“chat_messages”) are missing."))
    read = _read(messages, history)
    parents = _parents(read)
    before = moment(entry.get("created_at"))
    place: dict[str, str | None] = {}
    order = walk(parents)
    if len(order) < len(parents):
        history.damaged.append(
            _("%(count)s messages follow one another in a circle.") % {"count": f"{len(parents) - len(order):,}"}
        )
    for message_id in order:
        message = read[message_id]
        parent = parents[message_id]
        above = place.get(parent) if parent is not None else None
        place[message_id] = above
        created = moment(message.get("created_at")) or (history.nodes[above].created if above else before)
        try:
            pieces = _pieces(history, message_id, message, created)
        except Damaged as damage:
            history.damaged.append(_("Message %(id)s: %(why)s") % {"id": message_id, "why": damage.sentence})
            continue
        if pieces:
            history.nodes[message_id] = Node(message_id, above, pieces)
            place[message_id] = message_id
    current = entry.get("current_leaf_message_uuid")
    # Without a word on which is the present message, the last one is.
    history.current = place.get(current) if isinstance(current, str) and current in place else None
    if history.current is None and history.nodes:
        history.current = next((place[one] for one in reversed(list(read)) if place.get(one) is not None), None)
    if not history.nodes and history.damaged:
        raise Damaged(history.damaged[0])
    return history


def _read(messages: list[Any], history: History) -> dict[str, Mapping[str, Any]]:
    read: dict[str, Mapping[str, Any]] = {}
    for number, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            history.damaged.append(_("Message %(id)s is no object: %(what)s.") % {"id": number, "what": shown(message)})
            continue
        message_id = words(message.get("uuid")).strip() or f"#{number}"
        if message_id in read:
            history.damaged.append(_("Message %(id)s: An earlier message has the same id.") % {"id": message_id})
        else:
            read[message_id] = message
    return read


def _parents(read: Mapping[str, Mapping[str, Any]]) -> dict[str, str | None]:
    if any(message.get("parent_message_uuid") for message in read.values()):
        # The first message names a parent that is none of them.
        return {one: words(message.get("parent_message_uuid")) or None for one, message in read.items()}
    parents: dict[str, str | None] = {}
    last = None
    for message_id in read:
        parents[message_id] = last
        last = message_id
    return parents


def _pieces(
    history: History, message_id: str, message: Mapping[str, Any], created: datetime | None
) -> tuple[Piece, ...]:
    sender = message.get("sender")
    role = SENDERS.get(sender) if isinstance(sender, str) else None
    if role is None:
        raise Damaged(_("The sender %(sender)s is unknown.") % {"sender": shown(sender)})
    content = message.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    attached = list(_attached(message))
    if created is None:
        raise Damaged(_("No time stands in it."))
    if role == Message.Role.USER:
        said = paragraphs(*(_text(block) for block in blocks)) or words(message.get("text"))
        text = paragraphs(said, *attached)
        return (Piece(role, text, created),) if text.strip() else ()
    pieces = _Rounds(history, message_id, created).pieces(blocks)
    if not any(piece.text.strip() or piece.calls for piece in pieces):
        text = words(message.get("text"))
        thinking = paragraphs(*(piece.thinking for piece in pieces))
        pieces = [Piece(role, text, created, thinking=thinking)] if text.strip() or thinking else []
    if attached:
        last = next((piece for piece in reversed(pieces) if piece.role == role and not piece.calls), None)
        if last is None:
            pieces.append(Piece(role, paragraphs(*attached), created))
        else:
            pieces[pieces.index(last)] = replace(last, text=paragraphs(last.text, *attached))
    return tuple(pieces)


class _Rounds:
    """An answer's blocks as rows: words and calls, then the results of those calls, then words again."""

    def __init__(self, history: History, message_id: str, created: datetime) -> None:
        self.history, self.message_id, self.created = history, message_id, created
        self.found: list[Piece] = []
        self.text: list[str] = []
        self.thinking: list[str] = []
        self.calls: list[tuple[Call, Mapping[str, Any]]] = []

    def pieces(self, blocks: list[dict[str, Any]]) -> list[Piece]:
        results = [block for block in blocks if block.get("type") == "tool_result"]
        number = 0
        for block in blocks:
            kind = block.get("type")
            if kind == "tool_use":
                call = call_of(self.history.call_id(self.message_id, number), block.get("name"), block.get("input"))
                number += 1
                self.calls.append((call, _take_result(block, results)))
            elif kind == "thinking" or words(_text(block)).strip():
                if self.calls:
                    self._end_round()
                if kind == "thinking":
                    self.thinking.append(words(block.get("thinking")))
                else:
                    self.text.append(_text(block))
        for result in results:
            # Nobody here asked for it; it has a card all the same.
            call = call_of(self.history.call_id(self.message_id, number), result.get("name"), None)
            number += 1
            self.calls.append((call, result))
        self._end_round()
        return self.found

    def _end_round(self) -> None:
        text, thinking = paragraphs(*self.text), paragraphs(*self.thinking)
        if text or thinking or self.calls:
            calls = tuple(call for call, _result in self.calls)
            role = Message.Role.ASSISTANT
            self.found.append(Piece(role, text, self.created, thinking=thinking, calls=calls))
        for call, result in self.calls:
            output = _result_text(result) or NO_RESULT
            self.found.append(
                Piece(
                    Message.Role.TOOL,
                    output,
                    self.created,
                    answers=call.call_id,
                    is_error=result.get("is_error") is True,
                )
            )
        self.text, self.thinking, self.calls = [], [], []


def _take_result(call: Mapping[str, Any], results: list[dict[str, Any]]) -> Mapping[str, Any]:
    """The result of a call: the one that names its id, or, where old exports name none, the next of its tool."""
    wanted = call.get("id")
    for result in results:
        named = result.get("tool_use_id")
        if (named == wanted) if (named or wanted) else (result.get("name") in (None, call.get("name"))):
            results.remove(result)
            return result
    return {}


def _text(block: Mapping[str, Any]) -> str:
    if block.get("type") in ("text", "voice_note"):
        return paragraphs(words(block.get("title")), words(block.get("text")))
    return note("Image") if block.get("type") == "image" else ""


def _result_text(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    if isinstance(content, str):
        return words(content)
    parts = content if isinstance(content, list) else []
    return paragraphs(*(_result_part(part) for part in parts if isinstance(part, dict)))


def _result_part(part: Mapping[str, Any]) -> str:
    said = paragraphs(*(words(part.get(key)) for key in ("title", "url", "text")))
    kind = words(part.get("type"))
    return said or note("Image" if kind == "image" else kind or "part", words(part.get("name")))


def _attached(message: Mapping[str, Any]) -> Iterator[str]:
    for one in _objects(message.get("attachments")):
        yield note("Attachment", words(one.get("file_name")), words(one.get("extracted_content")))
    seen: set[str] = set()
    for one in [*_objects(message.get("files")), *_objects(message.get("files_v2"))]:
        name = words(one.get("file_name"))
        identity = words(one.get("file_uuid")) or name
        if identity not in seen:
            seen.add(identity)
            picture = one.get("file_kind") == "image" or PurePath(name).suffix.lower() in PICTURE_ENDINGS
            yield note("Image" if picture else "File", name)


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
