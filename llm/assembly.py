"""One answer put together from the events of its stream.

Everything that leaves here can be stored and sent back: NUL and lone surrogates are visible, a tool's input
is valid JSON in canonical form, ids and names have the characters that the API accepts.
"""

import json
import math
import re
import secrets
from collections.abc import Iterator
from typing import Any

from llm.errors import ErrorKind, ModelError
from llm.events import Answer, Started, StreamEvent, TextDelta, ThinkingDelta, ToolInputDelta, ToolUseStarted
from llm.prices import Usage
from llm.wire import THINKING_TYPES, canonical
from maxclaw.text import visible, visible_json

MALFORMED_KEY = "_malformed"
# Deeper than any real argument, and well within what every later reader of it can walk.
INPUT_MAX_DEPTH = 100
# The model reads these as results of its calls.
MALFORMED_INPUT = "This call did not run: its input is not one valid JSON object ({problem}). Send it again."
INVALID_NAME = "This call did not run: its tool name holds characters that tool names cannot have."
BETWEEN_TEXTS = "\n\n"
# How an answer ends whose last tool call may be incomplete.
INCOMPLETE_REASONS = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,200}")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_HIGH_SURROGATES = ("\ud800", "\udbff")


class _Text:
    """Text that grows. A surrogate pair torn between two deltas is joined before anyone sees a half of it."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.held = ""

    def add(self, delta: str) -> str:
        text = self.held + delta
        self.held = ""
        if text and _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
            text, self.held = text[:-1], text[-1]
        shown = visible(text)
        self.parts.append(shown)
        return shown

    def end(self) -> str:
        self.parts.append(visible(self.held))
        self.held = ""
        return "".join(self.parts)


class _Block:
    """A block while it arrives: its start as received, and what its deltas add."""

    def __init__(self, start: dict[str, Any]) -> None:
        self.start = start
        self.kind = start.get("type", "")
        self.text = _Text()
        self.raw: list[str] = []
        self.input: list[str] = []
        self.signature: list[str] = []
        self.citations: list[Any] = []
        self.call_id = ""
        self.name = ""


class Assembly:
    """Takes the events of one stream in order, yields what to show, and ends with the Answer."""

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.blocks: dict[int, _Block] = {}
        self.usage: dict[str, Any] = {}
        self.stop_reason = ""
        self.complete = False
        self.has_text = False
        self.bad_tool_calls: dict[str, str] = {}
        self.cut_tool_calls: dict[str, str] = {}
        self.call_ids: set[str] = set()

    def take(self, event: dict[str, Any]) -> Iterator[StreamEvent]:
        """What one event shows. Unknown kinds of events and deltas show nothing."""
        match event.get("type"):
            case "message_start":
                self._use(event["message"].get("usage"))
                yield Started(Usage.from_wire(self.usage) if self.usage else None)
            case "content_block_start":
                yield from self._start(event["index"], event["content_block"])
            case "content_block_delta":
                yield from self._grow(event["index"], event["delta"])
            case "message_delta":
                self.stop_reason = event["delta"].get("stop_reason") or self.stop_reason
                self._use(event.get("usage"))
            case "message_stop":
                self.complete = True

    def _use(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.usage.update({key: value for key, value in usage.items() if value is not None})

    def _start(self, index: int, start: dict[str, Any]) -> Iterator[StreamEvent]:
        block = self.blocks[index] = _Block(start)
        if block.kind == "tool_use":
            block.call_id = self._call_id(start.get("id"))
            block.name = self._tool_name(block.call_id, start.get("name"))
            yield ToolUseStarted(index, block.call_id, block.name)
        elif block.kind == "text" and start.get("text"):
            yield from self._text(block, start["text"])
        elif block.kind == "thinking" and start.get("thinking"):
            yield from self._thinking(block, start["thinking"])

    def _call_id(self, received: Any) -> str:
        """The id as received; a fresh one where the API would refuse it, because it has to go back."""
        call_id = received if isinstance(received, str) else ""
        if not _CALL_ID.fullmatch(call_id) or call_id in self.call_ids:
            call_id = f"toolu_{secrets.token_hex(12)}"
        self.call_ids.add(call_id)
        return call_id

    def _tool_name(self, call_id: str, received: Any) -> str:
        name = received if isinstance(received, str) else ""
        if _TOOL_NAME.fullmatch(name):
            return name
        self.bad_tool_calls[call_id] = INVALID_NAME
        return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:128] or "unnamed"

    def _grow(self, index: int, delta: dict[str, Any]) -> Iterator[StreamEvent]:
        block = self.blocks[index]
        match delta.get("type"):
            case "text_delta":
                yield from self._text(block, delta["text"])
            case "thinking_delta":
                yield from self._thinking(block, delta["thinking"])
            case "signature_delta":
                block.signature.append(delta["signature"])
            case "input_json_delta":
                block.input.append(delta["partial_json"])
                if delta["partial_json"]:
                    yield ToolInputDelta(index, visible(delta["partial_json"]))
            case "citations_delta":
                block.citations.append(delta["citation"])

    def _text(self, block: _Block, delta: str) -> Iterator[StreamEvent]:
        first = not block.text.parts
        shown = block.text.add(delta)
        if first and self.has_text and shown:
            shown = BETWEEN_TEXTS + shown
        self.has_text = self.has_text or bool(shown.strip())
        if shown:
            yield TextDelta(shown)

    def _thinking(self, block: _Block, delta: str) -> Iterator[StreamEvent]:
        block.raw.append(delta)
        if shown := block.text.add(delta):
            yield ThinkingDelta(shown)

    def answer(self) -> Answer:
        """The whole answer. Raises ModelError when the stream ended before it was complete, or said nothing."""
        if not self.complete:
            raise ModelError(
                ErrorKind.TRANSIENT,
                "The stream ended without message_stop.",
                rule="truncated",
                request_id=self.request_id,
            )
        blocks: list[dict[str, Any]] = []
        texts: list[str] = []
        thoughts: list[str] = []
        ordered = [self.blocks[index] for index in sorted(self.blocks)]
        for block in ordered:
            finished = self._finish(block, is_last=block is ordered[-1])
            if block.kind == "text" and finished:
                texts.append(finished["text"])
            elif block.kind == "thinking":
                thoughts.append(block.text.end())
            if finished:
                blocks.append(finished)
        usage = Usage.from_wire(self.usage) if self.usage else None
        stop_reason = self.stop_reason or ("tool_use" if self.call_ids else "end_turn")
        self._refuse_empty(stop_reason, blocks, usage)
        return Answer(
            content=canonical(blocks),
            blocks=blocks,
            text=BETWEEN_TEXTS.join(texts),
            thinking=BETWEEN_TEXTS.join(thought for thought in thoughts if thought.strip()),
            stop_reason=stop_reason,
            usage=usage,
            request_id=self.request_id,
            bad_tool_calls=self.bad_tool_calls,
            cut_tool_calls=self.cut_tool_calls,
        )

    def _refuse_empty(self, stop_reason: str, blocks: list[dict[str, Any]], usage: Usage | None) -> None:
        """A window that was full from the start may be told by an answer that holds nothing."""
        window_full = stop_reason == "model_context_window_exceeded"
        nothing_written = stop_reason == "max_tokens" and usage is not None and usage.output_tokens == 0
        if not blocks and not self.cut_tool_calls and (window_full or nothing_written):
            raise ModelError(
                ErrorKind.CONTEXT_FULL,
                f"The answer is empty and ended with {stop_reason}.",
                rule=stop_reason,
                status=200,
                request_id=self.request_id,
            )

    def _finish(self, block: _Block, is_last: bool) -> dict[str, Any] | None:
        match block.kind:
            case "text":
                text = block.text.end()
                if not text.strip():
                    return None
                finished = {**visible_json(block.start), "text": text}
                if block.citations:
                    finished["citations"] = visible_json(block.citations)
                return finished
            case "thinking":
                return self._finish_thinking(block)
            case "tool_use":
                return self._finish_tool_use(block, is_last)
        return self._as_received(block)

    def _finish_thinking(self, block: _Block) -> dict[str, Any] | None:
        thinking = "".join(block.raw)
        finished = {**block.start, "thinking": thinking}
        if block.signature:
            finished["signature"] = "".join(block.signature)
        # Signed for other characters than those that can be stored: it could only be refused.
        return finished if visible_json(finished) == finished else None

    def _as_received(self, block: _Block) -> dict[str, Any] | None:
        finished: dict[str, Any] = visible_json(block.start)
        if block.kind in THINKING_TYPES and finished != block.start:
            return None
        try:
            canonical(finished)
        except ValueError:
            return None
        return finished

    def _finish_tool_use(self, block: _Block, is_last: bool) -> dict[str, Any] | None:
        raw = "".join(block.input)
        cut_here = is_last and self.stop_reason in INCOMPLETE_REASONS
        value = block.start.get("input") or {}
        problem = ""
        if raw.strip():
            value, problem = parse_input(raw)
        elif cut_here:
            problem = "nothing arrived"
        if problem and cut_here:
            self.cut_tool_calls[block.call_id] = block.name
            self.bad_tool_calls.pop(block.call_id, None)
            return None
        if problem:
            self.bad_tool_calls[block.call_id] = MALFORMED_INPUT.format(problem=problem)
        return {
            **visible_json({key: item for key, item in block.start.items() if key != "input"}),
            "id": block.call_id,
            "name": block.name,
            "input": value,
        }


class _Unsound(ValueError):
    """Valid to Python's parser, but no JSON that would come back the same."""


def parse_input(raw: str) -> tuple[dict[str, Any], str]:
    """A tool call's input and "", or a stand-in that keeps the raw text and what is wrong with it.

    Refused: what is no JSON object, NaN and infinities (a float too large to hold included), and a key given
    twice in one object, where each reader would take another one.
    """
    try:
        value = json.loads(
            raw,
            object_pairs_hook=_object_without_duplicates,
            parse_float=_finite,
            parse_constant=_no_constant,
            strict=False,
        )
    except _Unsound as error:
        return {MALFORMED_KEY: visible(raw)}, str(error)
    except json.JSONDecodeError as error:
        return {MALFORMED_KEY: visible(raw)}, f"{error.msg} at character {error.pos}"
    except (ValueError, RecursionError):
        return {MALFORMED_KEY: visible(raw)}, "a number is too long or the nesting too deep"
    if not isinstance(value, dict):
        return {MALFORMED_KEY: visible(raw)}, "it is no object"
    if _is_deeper_than(value, INPUT_MAX_DEPTH):
        return {MALFORMED_KEY: visible(raw)}, f"it is nested deeper than {INPUT_MAX_DEPTH} levels"
    return visible_json(value), ""


def _is_deeper_than(value: Any, levels: int) -> bool:
    level = [value]
    for _depth in range(levels + 1):
        level = [
            item
            for parent in level
            if isinstance(parent, (dict, list))
            for item in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _item in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Unsound(f"the key {visible(twice)!r} stands in one object twice")
    return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise _Unsound(f"the number {text[:40]} is too large")
    return number


def _no_constant(name: str) -> Any:
    raise _Unsound(f"{name} is no JSON number")
