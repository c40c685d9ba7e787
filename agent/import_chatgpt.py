"""One conversation of a ChatGPT data export.

| in the export | here |
|---|---|
| `mapping`, `current_node` | a tree; nodes without words of anybody's are taken out of it |
| role system, messages hidden from the page, the user's custom instructions | left out |
| a message of the assistant's to another recipient than `all` | a call of that tool |
| role tool, right after a call | its result, several in a row together |
| role tool elsewhere (the service called by itself) | a call without arguments, and its result |
| `thoughts` | thinking of the answer that follows, for the reader alone |
| pictures, sound, files | a note with their name: the export's text does not hold them |
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agent.import_history import (
    Call,
    Damaged,
    History,
    Node,
    Piece,
    call_of,
    children_of,
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

FORMAT = "chatgpt"
LEFT_OUT_TYPES = {"user_editable_context", "model_editable_context", "reasoning_recap"}
# Where a page showed a citation, the text holds an unprintable marker.
_MARKERS = re.compile("\ue200.*?\ue201|[\ue200-\ue206]", re.DOTALL)


@dataclass(frozen=True)
class _Said:
    """What one message of the export says. `kind` is user, assistant, call, result or thinking."""

    kind: str
    text: str
    created: datetime | None
    tool: str = ""
    arguments: Any = None
    is_error: bool = False
    model: str = ""


def parse(entry: Mapping[str, Any]) -> History:
    """The conversation in an entry with a `mapping`. Raises Damaged."""
    history = History(
        format=FORMAT,
        source=identifier(entry.get("conversation_id") or entry.get("id"), "id"),
        title=words(entry.get("title")),
        archived=entry.get("is_archived") is True,
    )
    mapping = entry.get("mapping")
    if not isinstance(mapping, dict):
        raise Damaged(_("Its messages (“mapping”) are missing."))
    parents, children, said = _read_mapping(mapping, history)
    order = walk(parents, children)
    if len(order) < len(parents):
        history.damaged.append(
            _("%(count)s messages follow one another in a circle.") % {"count": f"{len(parents) - len(order):,}"}
        )
    standing = _Contraction(history, moment(entry.get("create_time")), parents, said)
    standing.contract(order)
    standing.join_results()
    history.current = standing.standing_at(entry.get("current_node"))
    if not history.nodes and history.damaged:
        raise Damaged(history.damaged[0])
    return history


def _read_mapping(
    mapping: Mapping[str, Any], history: History
) -> tuple[dict[str, str | None], dict[str, list[str]], dict[str, _Said]]:
    parents: dict[str, str | None] = {}
    children: dict[str, list[str]] = {}
    said: dict[str, _Said] = {}
    for node_id, node in mapping.items():
        if not isinstance(node, dict):
            history.damaged.append(_("Message %(id)s is no object: %(what)s.") % {"id": node_id, "what": shown(node)})
            continue
        parent = node.get("parent")
        parents[node_id] = parent if isinstance(parent, str) else None
        below = node.get("children")
        children[node_id] = [child for child in below if isinstance(child, str)] if isinstance(below, list) else []
        try:
            found = _read_message(node.get("message"))
        except Damaged as damage:
            history.damaged.append(_("Message %(id)s: %(why)s") % {"id": node_id, "why": damage.sentence})
        else:
            if found is not None:
                said[node_id] = found
    return parents, children, said


class _Contraction:
    """Takes nodes without words out of the tree, and hands thinking on to the answer below it."""

    def __init__(
        self,
        history: History,
        started: datetime | None,
        parents: Mapping[str, str | None],
        said: Mapping[str, _Said],
    ) -> None:
        self.history, self.parents, self.said = history, parents, said
        self.started = started or min((one.created for one in said.values() if one.created), default=None)
        # Of each node of the export: the node that stands at its place, thinking not handed on yet, its time.
        self.place: dict[str, str | None] = {}
        self.thinking: dict[str, str] = {}
        self.when: dict[str, datetime] = {}
        self.joined: dict[str, str] = {}

    def contract(self, order: list[str]) -> None:
        stays = self._staying(order)
        if self.started is None:
            if stays:
                raise Damaged(_("No time stands in it."))
            return
        for node_id in order:
            parent = self.parents[node_id] if self.parents[node_id] in self.place else None
            above = None if parent is None else self.place[parent]
            thinking = "" if parent is None else self.thinking[parent]
            before = self.started if parent is None else self.when[parent]
            said = self.said.get(node_id)
            self.when[node_id] = (said.created if said else None) or before
            if said is not None and said.kind == "thinking":
                thinking = paragraphs(thinking, said.text)
            self.place[node_id] = node_id if node_id in stays else above
            self.thinking[node_id] = thinking
            if said is not None and node_id in stays:
                node = self._node(node_id, above, said, thinking)
                self.history.nodes[node_id] = node
                self.thinking[node_id] = ""

    def _staying(self, order: list[str]) -> set[str]:
        """Nodes that become rows: those with words, and thinking that no answer follows."""
        stays: set[str] = set()
        answered: set[str] = set()  # what comes next below is the service's own
        for node_id in reversed(order):
            said = self.said.get(node_id)
            if said is not None and (said.kind != "thinking" or node_id not in answered):
                stays.add(node_id)
            goes_on = node_id in answered if node_id not in stays else said is not None and said.kind != "user"
            parent = self.parents[node_id]
            if goes_on and parent is not None:
                answered.add(parent)
        return stays

    def _node(self, node_id: str, above: str | None, said: _Said, thinking: str) -> Node:
        created = self.when[node_id]
        if said.kind == "user":
            return Node(node_id, above, (Piece(Message.Role.USER, said.text, created),))
        if said.kind == "result":
            return self._result(node_id, above, said, created, thinking)
        calls: tuple[Call, ...] = ()
        if said.kind == "call":
            calls = (call_of(self.history.call_id(node_id, 0), said.tool, said.arguments),)
        text = "" if said.kind == "thinking" else said.text
        piece = Piece(Message.Role.ASSISTANT, text, created, thinking=thinking, calls=calls, model=said.model)
        return Node(node_id, above, (piece,))

    def _result(self, node_id: str, above: str | None, said: _Said, created: datetime, thinking: str) -> Node:
        call = call_of(self.history.call_id(node_id, 0), said.tool, None)
        asks = Piece(Message.Role.ASSISTANT, "", created, thinking=thinking, calls=(call,))
        result = Piece(Message.Role.TOOL, said.text, created, answers=call.call_id, is_error=said.is_error)
        before = None if above is None else self.history.nodes.get(above)
        open_calls = before.open_calls if before is not None else ()
        answer = replace(result, answers=open_calls[0].call_id) if open_calls else None
        return Node(node_id, above, (asks, result), answer)

    def join_results(self) -> None:
        """Several results in a row of one tool are one: each call is answered once."""
        nodes = self.history.nodes
        below = children_of(self.history.parents)
        for node_id in list(nodes):
            node = nodes[node_id]
            before = nodes.get(node.parent or "")
            if before is None or len(below[before.id]) > 1 or not _same_tool(before, node):
                continue
            text = paragraphs(before.pieces[1].text, node.pieces[1].text)
            pieces = (before.pieces[0], replace(before.pieces[1], text=text))
            answer = None if before.answer is None else replace(before.answer, text=text)
            nodes[node_id] = Node(node_id, before.parent, pieces, answer)
            del nodes[before.id]
            self.joined[before.id] = node_id

    def standing_at(self, node_id: Any) -> str | None:
        """The message that stands at the place of a node of the export, if any does."""
        found = self.place.get(node_id) if isinstance(node_id, str) else None
        while found in self.joined:
            found = self.joined[found]
        return found


def _same_tool(before: Node, node: Node) -> bool:
    results = [one.pieces[-1].role == Message.Role.TOOL for one in (before, node)]
    return all(results) and before.pieces[0].calls[0].tool == node.pieces[0].calls[0].tool


def _read_message(message: Any) -> _Said | None:
    """What a message says; None for one that is not for the reader. Raises Damaged."""
    if message is None:
        return None
    if not isinstance(message, dict):
        raise Damaged(_("It is no object: %(what)s.") % {"what": shown(message)})
    author, content, metadata = (message.get(key) for key in ("author", "content", "metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    if metadata.get("is_visually_hidden_from_conversation") is True:
        return None
    if not isinstance(author, dict) or not isinstance(author.get("role"), str):
        raise Damaged(_("It does not say who wrote it."))
    role = author["role"]
    if role == "system" or (isinstance(content, dict) and content.get("content_type") in LEFT_OUT_TYPES):
        return None
    if role not in ("user", "assistant", "tool"):
        raise Damaged(_("The role %(role)s is unknown.") % {"role": shown(role)})
    if not isinstance(content, dict):
        raise Damaged(_("It has no content."))
    created = moment(message.get("create_time"))
    kind = words(content.get("content_type"))
    if kind == "thoughts":
        text = _thoughts(content)
        return _Said("thinking", text, created) if text else None
    text = _without_markers(_text_of(content, metadata), metadata)
    model = words(metadata.get("model_slug"))
    if role == "tool":
        name = words(author.get("name")) or "tool"
        return _Said("result", text, created, tool=name, is_error=kind == "system_error")
    recipient = words(message.get("recipient")) or "all"
    if role == "assistant" and recipient != "all":
        return _Said("call", "", created, tool=recipient, arguments=_arguments(text, recipient), model=model)
    if role == "assistant" and kind == "code" and text.strip():
        text = f"```\n{text}\n```"
    if role == "user":
        text = paragraphs(text, *_attachments(metadata))
    return _Said(role, text, created, model=model) if text.strip() else None


def _text_of(content: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        named = _attached_pictures(metadata)
        return paragraphs(*(_part(part, named) for part in parts))
    kind = words(content.get("content_type"))
    if kind in ("tether_quote", "sonic_webpage"):
        return paragraphs(words(content.get("title")), words(content.get("url")), words(content.get("text")))
    if kind == "tether_browsing_display":
        return paragraphs(words(content.get("summary")), words(content.get("result")))
    if kind == "system_error":
        return paragraphs(words(content.get("name")), words(content.get("text")))
    for key in ("text", "result", "output_str", "content"):
        if isinstance(content.get(key), str):
            return words(content[key])
    if kind == "computer_output":
        return note("Image", "screenshot")
    return note(kind) if kind and kind != "text" else ""


def _part(part: Any, pictures_are_named: bool) -> str:
    if isinstance(part, str):
        return words(part)
    if not isinstance(part, dict):
        return ""
    kind = words(part.get("content_type"))
    if kind == "image_asset_pointer":
        metadata = part.get("metadata")
        dalle = metadata.get("dalle") if isinstance(metadata, dict) else None
        prompt = words(dalle.get("prompt")) if isinstance(dalle, dict) else ""
        return "" if pictures_are_named and not prompt else note("Image", prompt)
    if isinstance(part.get("text"), str):
        return paragraphs(words(part.get("title")), words(part.get("url")), words(part["text"]))
    if "audio" in kind or "video" in kind:
        return note("Video" if kind.startswith("video") else "Audio")
    return paragraphs(words(part.get("result"))) or (note(kind) if kind else "")


def _thoughts(content: Mapping[str, Any]) -> str:
    thoughts = content.get("thoughts")
    if not isinstance(thoughts, list):
        return _text_of(content, {})
    told = (one for one in thoughts if isinstance(one, dict))
    return paragraphs(*(paragraphs(words(one.get("summary")), words(one.get("content"))) for one in told))


def _arguments(text: str, tool: str) -> dict[str, Any]:
    """The arguments of a call, which stand in its text: an object, or code, or words."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return found
    return {"code" if tool == "python" else "input": text}


def _attachments(metadata: Mapping[str, Any]) -> list[str]:
    attached = metadata.get("attachments")
    found = []
    for one in attached if isinstance(attached, list) else []:
        if isinstance(one, dict):
            found.append(note("Image" if _is_picture(one) else "File", words(one.get("name"))))
    return found


def _attached_pictures(metadata: Mapping[str, Any]) -> bool:
    """Whether pictures of the message are named among its attachments."""
    attached = metadata.get("attachments")
    return isinstance(attached, list) and any(isinstance(one, dict) and _is_picture(one) for one in attached)


def _is_picture(attachment: Mapping[str, Any]) -> bool:
    return words(attachment.get("mime_type")).startswith("image/")


def _without_markers(text: str, metadata: Mapping[str, Any]) -> str:
    """Citations as the page showed them: a link where the export says which, else nothing."""
    if "\ue200" not in text:
        return text
    references = metadata.get("content_references")
    for one in references if isinstance(references, list) else []:
        if isinstance(one, dict) and "\ue200" in words(one.get("matched_text")):
            text = text.replace(words(one["matched_text"]), words(one.get("alt")))
    return _MARKERS.sub("", text)
