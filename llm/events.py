"""What a streaming answer consists of, as the rest of MaxClaw sees it."""

from dataclasses import dataclass, field
from typing import Any

from llm.prices import Usage


@dataclass(frozen=True)
class Started:
    """The server took the request. `usage` holds the prompt's tokens, None where the server does not tell yet."""

    usage: Usage | None


@dataclass(frozen=True)
class TextDelta:
    """More of what the user reads."""

    text: str


@dataclass(frozen=True)
class ThinkingDelta:
    """More of what the model shows of its thinking."""

    text: str


@dataclass(frozen=True)
class ToolUseStarted:
    """A tool call begins. `index` is the block's place in the stream; `call_id` the id that goes back."""

    index: int
    call_id: str
    name: str


@dataclass(frozen=True)
class ToolInputDelta:
    """More of a tool call's raw JSON."""

    index: int
    partial_json: str


@dataclass(frozen=True)
class Answer:
    """A whole answer.

    `content` is the canonical JSON array of `blocks`, as it goes into the record and back to the model: blank
    text blocks and cut tool calls are gone from it. `bad_tool_calls` names calls that must not run, each with
    the sentence that answers it; their blocks stand in the content with a valid input. `cut_tool_calls` are
    the calls whose input the end cut off, id to tool name. `usage` is None where the server told none.
    """

    content: str
    blocks: list[dict[str, Any]]
    text: str
    thinking: str
    stop_reason: str
    usage: Usage | None
    request_id: str
    bad_tool_calls: dict[str, str] = field(default_factory=dict)
    cut_tool_calls: dict[str, str] = field(default_factory=dict)


StreamEvent = Started | TextDelta | ThinkingDelta | ToolUseStarted | ToolInputDelta | Answer
