"""A request laid out as the prompt that a model reads: one position a block, in the order tools, system,
messages.
"""

import json
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil
from typing import Any

from llm.emulator.errors import ApiError
from llm.emulator.manual_thinking import stripped_before
from llm.emulator.request_shape import DEFAULT_EFFORT, MessagesRequest
from llm.emulator.thinking import Binding, ThinkingChain
from llm.emulator.tokens import BLOCK_OVERHEAD_TOKENS, IMAGE_TOKENS, token_weight

MARKERS_MAX = 4
UNMARKABLE = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class Marker:
    """A cache breakpoint: at which position, for how long, and where the request says so."""

    position: int
    ttl: str
    path: str


@dataclass
class Prompt:
    """Positions in order. `pieces` are canonical bytes without cache markers, `totals` the tokens up to each
    end.
    """

    pieces: list[bytes] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    system_start: int = 0
    messages_start: int = 0
    messages_level: bytes = b""
    binding: Binding = field(default_factory=Binding)
    chain: ThinkingChain = field(default_factory=ThinkingChain)
    dropped_thinking: list[dict[str, str]] = field(default_factory=list)
    totals: list[int] = field(default_factory=list)

    @property
    def total_tokens(self) -> int:
        return self.totals[-1] if self.totals else 0


def lay_out(request: MessagesRequest) -> Prompt:
    """Render `request` into positions, checking cache markers and returning thinking on the way.

    Raises ApiError for too many markers, a 1h marker behind a 5m one, and thinking that is not as it was
    made.
    """
    prompt = Prompt()
    for number, tool in enumerate(request.tools):
        _place(prompt, b"t", tool, f"tools.{number}")
    prompt.system_start = len(prompt.pieces)
    for number, block in enumerate(request.system):
        _place(prompt, b"s", block, f"system.{number}")
    prompt.messages_start = len(prompt.pieces)
    _place_turns(prompt, request)
    prompt.totals = list(accumulate(prompt.tokens))
    _place_automatic_marker(prompt, request)
    _check_markers(prompt.markers)
    prompt.messages_level = _messages_level(request)
    return prompt


def bind_block(prompt: Prompt, block: dict[str, Any]) -> None:
    """Put a block of the answer behind the prompt, so that later thinking is bound to it as well."""
    if block["type"] not in UNMARKABLE:
        prompt.binding.add(b"assistant" + _render(block)[0])


def _place(prompt: Prompt, level: bytes, block: dict[str, Any], path: str) -> None:
    piece, weight = _render(block)
    piece = level + piece
    prompt.pieces.append(piece)
    prompt.tokens.append(ceil(weight) + BLOCK_OVERHEAD_TOKENS)
    if block.get("type") not in UNMARKABLE:
        prompt.binding.add(piece)
    marker = _marker_of(block)
    if marker:
        prompt.markers.append(Marker(len(prompt.pieces) - 1, marker.get("ttl") or "5m", path))


def _place_turns(prompt: Prompt, request: MessagesRequest) -> None:
    latest = max((place for place, turn in enumerate(request.turns) if turn.role == "assistant"), default=-1)
    strips_before = stripped_before(request.turns) if request.model.strips_thinking else 0
    for place, turn in enumerate(request.turns):
        level = turn.role.encode()
        for number, index, block in turn.blocks:
            path = f"messages.{number}.content.{index}"
            if block["type"] in UNMARKABLE:
                if place < strips_before:
                    continue
                reason = prompt.chain.keep(
                    block,
                    path,
                    request.model,
                    prompt.binding,
                    latest=place == latest,
                    drop_mismatched=request.drop_mismatched_thinking,
                )
                if reason:
                    prompt.dropped_thinking.append({"type": "thinking_dropped", "path": path, "reason": reason})
                    continue
            _place(prompt, level, block, path)


def _render(block: dict[str, Any]) -> tuple[bytes, float]:
    """Canonical bytes and weight in tokens of a block. Order of keys counts inside tool input and schemas
    only.
    """
    kind = block.get("type")
    if kind == "text":
        text = block["text"]
        return b'{"text":' + text.encode("utf-8", "surrogatepass"), token_weight(text)
    if kind == "tool_result" and isinstance(block.get("content", ""), str):
        text = block.get("content", "")
        head = f'{{"result":{block["tool_use_id"]},{bool(block.get("is_error"))},'
        return (head + text).encode("utf-8", "surrogatepass"), token_weight(text) + 8
    if kind == "tool_result":
        parts = [_render(part) for part in block["content"] or []]
        head = f'{{"results":{block["tool_use_id"]},{bool(block.get("is_error"))},{len(parts)},'
        return head.encode() + b"\0".join(part for part, _ in parts), 8 + sum(weight for _, weight in parts)
    if kind == "thinking":
        return f'{{"thinking":{block["signature"]}'.encode(), token_weight(block["thinking"])
    if kind == "image":
        return _dump(block), float(IMAGE_TOKENS)
    rendered = _dump(block)
    return rendered, token_weight(rendered.decode("utf-8", "surrogatepass"))


def _dump(block: dict[str, Any]) -> bytes:
    kept = {key: block[key] for key in sorted(block) if key != "cache_control"}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _marker_of(block: dict[str, Any]) -> dict[str, Any] | None:
    """The marker of a block; one inside a tool result's content counts as the result's."""
    marker: dict[str, Any] | None = block.get("cache_control")
    if marker is None and block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        return next((part["cache_control"] for part in block["content"] if part.get("cache_control")), None)
    return marker


def _place_automatic_marker(prompt: Prompt, request: MessagesRequest) -> None:
    """The top-level cache_control: one marker on the last block that can carry one."""
    if request.cache_control is None:
        return
    ttl = request.cache_control.get("ttl") or "5m"
    position = len(prompt.pieces) - 1
    while position >= 0 and prompt.pieces[position].startswith((b'assistant{"thinking":', b'assistant{"data":')):
        position -= 1
    if position < 0:
        return
    present = next((marker for marker in prompt.markers if marker.position == position), None)
    if present is not None:
        if present.ttl != ttl:
            raise ApiError(
                f"{present.path}.cache_control: the top-level cache_control has ttl='{ttl}', this block has "
                f"ttl='{present.ttl}'"
            )
        return
    prompt.markers.append(Marker(position, ttl, "cache_control"))


def _check_markers(markers: list[Marker]) -> None:
    if len(markers) > MARKERS_MAX:
        raise ApiError(f"A maximum of {MARKERS_MAX} blocks with cache_control may be provided. Found {len(markers)}.")
    short = False
    for marker in markers:
        if marker.ttl == "1h" and short:
            raise ApiError(
                f"{marker.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                f"ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: `tools`, "
                "`system`, "
                "`messages`."
            )
        short = short or marker.ttl == "5m"


def _messages_level(request: MessagesRequest) -> bytes:
    """What invalidates messages but not tools and system: choice, thinking, effort, format, images."""
    settings: list[Any] = [request.tool_choice["type"], request.tool_choice["name"]]
    settings.append(request.tool_choice["disable_parallel_tool_use"])
    settings.append(request.thinking)
    settings.append(request.effort or DEFAULT_EFFORT)
    settings.append(request.output_format)
    settings.append(any(block["type"] == "image" for turn in request.turns for _, _, block in turn.blocks))
    return json.dumps(settings).encode()
