"""An answer on its way out: blocks cut into deltas, counted, and shortened where a limit or a stop sequence
says.
"""

import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from llm.emulator.tokens import token_weight

DELTA_CHARS = 24
BLOCK_TOKENS = 3
RAW_INPUT_KEY = "partial_json"


@dataclass
class OutputBlock:
    """One block of an answer and the deltas it is sent in.

    `kind`: text, thinking, redacted_thinking or tool_use. `pieces` are text, thinking or JSON text. A tool
    call's `id` and `name`, a thinking block's `signature` and a redacted one's `data` stand beside them.
    """

    kind: str
    pieces: list[str] = field(default_factory=list)
    id: str = ""
    name: str = ""
    signature: str = ""
    data: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_thinking(self) -> bool:
        return self.kind in ("thinking", "redacted_thinking")

    def start(self) -> dict[str, Any]:
        """The block as `content_block_start` shows it."""
        if self.kind == "text":
            return {"type": "text", "text": ""}
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        if self.kind == "redacted_thinking":
            return {"type": "redacted_thinking", "data": self.data}
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": {}}

    def delta(self, piece: str) -> dict[str, Any]:
        """One piece as a delta."""
        if self.kind == "text":
            return {"type": "text_delta", "text": piece}
        if self.kind == "thinking":
            return {"type": "thinking_delta", "thinking": piece}
        return {"type": "input_json_delta", "partial_json": piece}

    def whole(self) -> dict[str, Any]:
        """The finished block. Tool JSON that was cut gives the input that can still be read: none."""
        if self.kind == "text":
            return {"type": "text", "text": self.text}
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": self.text, "signature": self.signature}
        if self.kind == "redacted_thinking":
            return {"type": "redacted_thinking", "data": self.data}
        return {"type": "tool_use", "id": self.id, "name": self.name, "input": _read_input(self.text)}


@dataclass
class Answer:
    """Blocks, why they end, and how they are delivered (`pace`, `hold`: see scripting)."""

    blocks: list[OutputBlock]
    stop_reason: str | None = None
    stop_sequence: str | None = None
    pace: Any = None
    hold: str | None = None
    output_tokens: int = 0
    thinking_tokens: int = 0

    def finish(self, limit_tokens: int, limit_reason: str, stop_sequences: Iterable[str]) -> None:
        """Fill `stop_reason` and the token counts; cut what is beyond the limit or behind a stop sequence."""
        self._cut_at_sequence(stop_sequences)
        weight, thinking_weight = 0.0, 0.0
        for place, block in enumerate(self.blocks):
            weight += BLOCK_TOKENS
            for number, piece in enumerate(block.pieces):
                piece_weight = token_weight(piece)
                if ceil(weight + piece_weight) > limit_tokens:
                    block.pieces[number:] = _fitting(piece, limit_tokens - weight)
                    del self.blocks[place + 1 :]
                    self.stop_reason = limit_reason
                    weight = float(limit_tokens)
                    break
                weight += piece_weight
                if block.is_thinking:
                    thinking_weight += piece_weight
            else:
                continue
            break
        if self.stop_reason is None:
            called = any(block.kind == "tool_use" for block in self.blocks)
            self.stop_reason = "tool_use" if called else "end_turn"
        self.blocks = [block for block in self.blocks if block.pieces or block.kind not in ("text", "thinking")]
        self.output_tokens = min(max(1, ceil(weight)), limit_tokens)
        self.thinking_tokens = ceil(thinking_weight)

    def cut_tool_json(self) -> None:
        """End the first tool call within its JSON, or the first block within its text, as a spent limit
        would.
        """
        called = [place for place, block in enumerate(self.blocks) if block.kind == "tool_use"]
        place = called[0] if called else 0
        if self.blocks:
            text = self.blocks[place].text
            self.blocks[place].pieces = split_text(text[: len(text) // 2])
            del self.blocks[place + 1 :]
        self.stop_reason = "max_tokens"

    def _cut_at_sequence(self, stop_sequences: Iterable[str]) -> None:
        for place, block in enumerate(self.blocks):
            if block.kind != "text":
                continue
            text = block.text
            found = [(text.find(sequence), sequence) for sequence in stop_sequences if sequence in text]
            if found:
                end, self.stop_sequence = min(found)
                block.pieces = split_text(text[:end])
                del self.blocks[place + 1 :]
                self.stop_reason = "stop_sequence"
                return


def _fitting(piece: str, left_tokens: float) -> list[str]:
    """The longest start of `piece` that weighs at most `left_tokens`, as a list of one or none."""
    low, high = 0, len(piece)
    while low < high:
        middle = (low + high + 1) // 2
        if token_weight(piece[:middle]) <= left_tokens:
            low = middle
        else:
            high = middle - 1
    return [piece[:low]] if low else []


def split_text(text: str) -> list[str]:
    """`text` in pieces of DELTA_CHARS characters."""
    return [text[start : start + DELTA_CHARS] for start in range(0, len(text), DELTA_CHARS)]


def block_from(said: dict[str, Any] | str) -> OutputBlock:
    """An output block from the form that scripts use.

    A string or `{"type": "text", "text": str | None, "pieces": [str]}`; the same with `thinking`;
    `{"type": "tool_use", "name": str, "id"?: str, "input"?: {...}, "partial_json"?: [str]}`, the last one
    being the raw JSON text in its deltas; `{"type": "redacted_thinking"}`. Raises ValueError for anything
    else.
    """
    if isinstance(said, str):
        said = {"type": "text", "text": said}
    kind = said.get("type")
    if kind in ("text", "thinking"):
        pieces = said.get("pieces")
        return OutputBlock(kind, list(pieces) if pieces else split_text(str(said.get(kind, ""))))
    if kind == "redacted_thinking":
        return OutputBlock(kind)
    if kind != "tool_use" or not said.get("name"):
        raise ValueError(f"no block of an answer: {json.dumps(said)[:200]}")
    raw = said.get(RAW_INPUT_KEY)
    if raw is None:
        raw = split_text(json.dumps(said.get("input") or {}, ensure_ascii=False))
    pieces = [raw] if isinstance(raw, str) else list(raw)
    return OutputBlock(kind, pieces, id=said.get("id") or new_id("toolu"), name=said["name"])


def new_id(prefix: str) -> str:
    """A fresh id such as `msg_01...`."""
    return f"{prefix}_01{secrets.token_hex(11)}"


def _read_input(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return {}
