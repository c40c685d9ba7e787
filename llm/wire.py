"""The one serialisation of requests, to the byte.

A request is a header (model, tools, system, thinking, effort, tool choice, betas), messages, `max_tokens` and
cache anchors. What has been sent is a cached prefix, so nothing here parses content and writes it anew:
blocks are cut out and anchors put in textually, and everything that is written at all is written by
`canonical`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import transaction

from llm.catalog import Model
from llm.models import RequestHeader
from maxclaw.text import visible_json

# The API refuses a request with more.
MAX_ANCHORS = 4
SYSTEM = "system"
THINKING_TYPES = frozenset({"thinking", "redacted_thinking"})

_decoder = json.JSONDecoder()
# Digests of headers that are committed: the usual request then costs no query for its header.
_known_headers: set[str] = set()


def canonical(value: Any) -> str:
    """The JSON text of `value`: no spaces, keys in the order given, characters unescaped.

    Raises ValueError for a float that JSON has no word for.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True)
class Anchor:
    """One cache breakpoint: `at` is "system" or a WireMessage's last_id (0: opening); `ttl` "5m" or "1h"."""

    at: str | int
    ttl: str


def anchors_to_json(anchors: Sequence[Anchor]) -> list[dict[str, str | int]]:
    """What ModelCall.anchors stores."""
    return [{"at": anchor.at, "ttl": anchor.ttl} for anchor in anchors]


def anchors_from_json(stored: Sequence[dict[str, Any]]) -> list[Anchor]:
    """The anchors of a stored call."""
    return [Anchor(item["at"], item["ttl"]) for item in stored]


class WireMessage(NamedTuple):
    """One message of a request. `content` is the exact JSON array text of its blocks.

    `last_id` is the id of the last row in it, 0 for the opening. A named tuple, because one is made for every row of
    every request.
    """

    last_id: int
    role: str
    content: str


def turn_anchors(model: Model, previous_last_id: int | None, last_id: int) -> list[Anchor]:
    """The anchors of a turn's request, never more than MAX_ANCHORS.

    The end of the system text, the last message of the generation's previous turn request (a turn that adds
    more than 20 blocks falls out of the provider's look-back without it), and the last message of this one. A
    caller whose previous last message is no longer among the messages passes None.
    """
    anchors = [Anchor(SYSTEM, model.system_lifetime)]
    if previous_last_id is not None and previous_last_id != last_id:
        anchors.append(Anchor(previous_last_id, model.message_lifetime))
    anchors.append(Anchor(last_id, model.message_lifetime))
    return anchors


def header_text(
    *,
    model: Model,
    tools: Sequence[dict[str, Any]],
    system: str,
    effort: str | None = None,
    thinking: dict[str, Any] | None = None,
    tool_choice: dict[str, Any] | None = None,
    betas: Sequence[str] = (),
) -> str:
    """The exact text of a request's header, without anchors: what RequestHeader keeps.

    `tools` stay in the order given; the caller sorts them by name, whatever the order of their arrival. Parts
    that are empty are left out.
    """
    header: dict[str, Any] = {"model": model.wire_id}
    if tools:
        header["tools"] = visible_json(list(tools))
    if system.strip():
        header["system"] = visible_json([{"type": "text", "text": system}])
    if thinking is not None:
        header["thinking"] = thinking
    if effort:
        header["output_config"] = {"effort": effort}
    if tool_choice is not None:
        header["tool_choice"] = tool_choice
    if betas:
        header["betas"] = list(betas)
    return canonical(header)


def header_sha256(text: str) -> str:
    """The address of a header."""
    return hashlib.sha256(text.encode()).hexdigest()


def remember_header(text: str) -> RequestHeader:
    """The header's row, made when it is new. No query for a header that this process knows to be stored."""
    header = RequestHeader(sha256=header_sha256(text), text=text)
    if header.sha256 not in _known_headers:
        RequestHeader.objects.bulk_create([header], ignore_conflicts=True)
        # Known only once it is committed: a rollback takes the row with it.
        transaction.on_commit(lambda: _known_headers.add(header.sha256))
    header._state.adding = False
    header._state.db = "default"
    return header


def forget_headers(**_signal: Any) -> None:
    """Ask the database again for every header. Connected to post_migrate, which a flush sends too."""
    _known_headers.clear()


def betas_of(header: str) -> tuple[str, ...]:
    """The values of the anthropic-beta header that a stored header asks for."""
    betas = _members(header).get("betas")
    return tuple(json.loads(betas)) if betas else ()


@lru_cache(maxsize=128)
def _members(header: str) -> dict[str, str]:
    """Key to exact value text of a JSON object written by `canonical`."""
    members: dict[str, str] = {}
    position = 1
    while header[position] != "}":
        key, position = _decoder.raw_decode(header, position)
        _value, end = _decoder.raw_decode(header, position + 1)
        members[key] = header[position + 1 : end]
        position = end + 1 if header[end] == "," else end
    return members


def split_blocks(content: str) -> list[str]:
    """The exact substrings of the blocks of a JSON array text written by `canonical`."""
    return [text for text, _block in _blocks(content)]


def _blocks(content: str) -> list[tuple[str, Any]]:
    blocks = []
    position = 1
    while content[position] != "]":
        block, end = _decoder.raw_decode(content, position)
        blocks.append((content[position:end], block))
        position = end + 1 if content[end] == "," else end
    return blocks


def without_thinking(content: str) -> str | None:
    """`content` without its thinking blocks, every other block byte-identical; None when nothing is left."""
    if 'thinking"' not in content:
        return content if content != "[]" else None
    kept = [text for text, block in _blocks(content) if block.get("type") not in THINKING_TYPES]
    return f"[{','.join(kept)}]" if kept else None


def body_bytes(
    header: str,
    messages: Sequence[WireMessage],
    anchors: Sequence[Anchor],
    max_tokens: int,
    stream: bool = True,
) -> bytes:
    """The request's body, exactly as it goes out.

    Raises ValueError for more than MAX_ANCHORS anchors, two at one place, or one that names no message, an
    absent system text or a thinking block.
    """
    lifetimes = _lifetimes(anchors)
    members = _members(header)
    parts = [f'{{"model":{members["model"]},"max_tokens":{max_tokens}']
    if stream:
        parts.append(',"stream":true')
    for key, value in members.items():
        if key in ("model", "betas"):
            continue
        if key == SYSTEM and SYSTEM in lifetimes:
            value = _anchored(value, lifetimes.pop(SYSTEM))
        parts.append(f',"{key}":{value}')
    parts.append(',"messages":')
    parts.append(_messages_text(messages, lifetimes))
    parts.append("}")
    if lifetimes:
        raise ValueError(f"no message to anchor at: {', '.join(str(place) for place in lifetimes)}")
    return "".join(parts).encode()


def count_body(header: str, messages: Sequence[WireMessage]) -> bytes:
    """The body that asks how many tokens this request has: no anchors, no output limit."""
    members = _members(header)
    parts = ["{"]
    parts.extend(f'"{key}":{value},' for key, value in members.items() if key != "betas")
    parts.append(f'"messages":{_messages_text(messages, {})}}}')
    return "".join(parts).encode()


def body_sha256(body: bytes) -> str:
    """What ModelCall keeps of a body, and `verify` compares."""
    return hashlib.sha256(body).hexdigest()


def _lifetimes(anchors: Sequence[Anchor]) -> dict[str | int, str]:
    if len(anchors) > MAX_ANCHORS:
        raise ValueError(f"{len(anchors)} anchors, where a request may have {MAX_ANCHORS}")
    lifetimes = {anchor.at: anchor.ttl for anchor in anchors}
    if len(lifetimes) < len(anchors):
        raise ValueError("two anchors at one place")
    return lifetimes


def _messages_text(messages: Sequence[WireMessage], lifetimes: dict[str | int, str]) -> str:
    """The JSON array of the messages; takes the anchors that it placed out of `lifetimes`."""
    parts = []
    for message in messages:
        content = message.content
        if message.last_id in lifetimes:
            _check_markable(content)
            content = _anchored(content, lifetimes.pop(message.last_id))
        parts.append(f'{{"role":"{message.role}","content":{content}}}')
    return f"[{','.join(parts)}]"


def _check_markable(content: str) -> None:
    blocks = _blocks(content)
    if not blocks or blocks[-1][1].get("type") in THINKING_TYPES:
        raise ValueError("a message that is empty or ends in thinking cannot carry an anchor")


def _anchored(content: str, ttl: str) -> str:
    """`content` with the anchor inside its last block, nothing else touched."""
    if not content.endswith("}]"):
        raise ValueError("only a message that ends in a block can carry an anchor")
    return f'{content[:-2]},"cache_control":{{"type":"ephemeral","ttl":"{ttl}"}}}}]'
