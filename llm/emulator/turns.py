"""Messages merged into turns, and the rules between turns: roles, pairs of tool calls and results."""

from dataclasses import dataclass, field
from typing import Any

from llm.emulator.block_shape import check_block, check_text, refuse_extra
from llm.emulator.errors import ApiError

MESSAGES_MAX = 100_000
MESSAGE_FIELDS = frozenset({"role", "content"})


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role. Each block keeps its place: (message index, block index, block)."""

    role: str
    blocks: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)


def read_turns(messages: Any, *, strict_citations: bool, leading_assistant: bool) -> list[Turn]:
    """Check every message and merge consecutive ones of one role.

    `leading_assistant`: whether the first message may be the assistant's. Raises ApiError in the API's words.
    """
    if not isinstance(messages, list):
        raise ApiError("messages: Input should be a valid list")
    if not messages:
        raise ApiError("messages: at least one message is required")
    if len(messages) > MESSAGES_MAX:
        raise ApiError(f"messages: List should have at most {MESSAGES_MAX} items after validation")
    turns: list[Turn] = []
    for number, message in enumerate(messages):
        role, blocks = _read_message(message, number, strict_citations=strict_citations)
        if not turns or turns[-1].role != role:
            turns.append(Turn(role))
        turns[-1].blocks.extend((number, place, block) for place, block in enumerate(blocks))
    if turns[0].role == "assistant" and not leading_assistant:
        raise ApiError('messages: first message must use the "user" role')
    _check_pairs(turns)
    if turns[-1].role == "assistant":
        raise ApiError(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
    return turns


def _read_message(message: Any, number: int, *, strict_citations: bool) -> tuple[str, list[dict[str, Any]]]:
    path = f"messages.{number}"
    if not isinstance(message, dict):
        raise ApiError(f"{path}: Input should be a valid dictionary")
    for name in ("role", "content"):
        if name not in message:
            raise ApiError(f"{path}.{name}: Field required")
    refuse_extra(message, MESSAGE_FIELDS, path)
    role, content = message["role"], message["content"]
    if role == "system":
        if number == 0:
            raise ApiError("messages.0: use the top-level 'system' parameter for the initial system prompt")
        raise ApiError(
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            "not "
            '"system" as an input message role.'
        )
    if role not in ("user", "assistant"):
        raise ApiError(f"{path}.role: Input should be 'user' or 'assistant'")
    if content == "" or content == []:
        raise ApiError(
            f"{path}: all messages must have non-empty content except for the optional final assistant message"
        )
    if isinstance(content, str):
        check_text(content, f"{path}.content")
        return role, [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise ApiError(f"{path}.content: Input should be a valid string")
    for place, block in enumerate(content):
        check_block(block, f"{path}.content.{place}", role, strict_citations=strict_citations)
    return role, content


def _check_pairs(turns: list[Turn]) -> None:
    """Every tool_use is answered by exactly one tool_result, first thing in the next turn."""
    seen: set[str] = set()
    open_calls: dict[str, int] = {}
    for turn in turns:
        if turn.role == "assistant":
            open_calls = {}
            for number, place, block in turn.blocks:
                if block["type"] != "tool_use":
                    continue
                if block["id"] in seen:
                    raise ApiError(f"messages.{number}.content.{place}: `tool_use` ids must be unique")
                seen.add(block["id"])
                open_calls[block["id"]] = number
        else:
            _check_results(turn, open_calls)
            open_calls = {}
    if open_calls:
        raise _orphans(open_calls)


def _check_results(turn: Turn, open_calls: dict[str, int]) -> None:
    answered: set[str] = set()
    leading = True
    late: dict[str, int] = {}
    for number, place, block in turn.blocks:
        if block["type"] != "tool_result":
            leading = False
            continue
        call_id = block["tool_use_id"]
        if call_id not in open_calls:
            raise ApiError(
                f"messages.{number}.content.{place}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{call_id}. Each `tool_result` block must have a corresponding `tool_use` block in the "
                f"previous "
                "message."
            )
        if call_id in answered:
            raise ApiError(
                f"messages.{number}.content.{place}: each tool_use must have a single result. Found multiple "
                f"`tool_result` blocks with id: {call_id}"
            )
        answered.add(call_id)
        if not leading:
            late[call_id] = open_calls[call_id]
    missing = {call_id: number for call_id, number in open_calls.items() if call_id not in answered}
    if missing or late:
        raise _orphans(missing or late)


def _orphans(calls: dict[str, int]) -> ApiError:
    return ApiError(
        f"messages.{min(calls.values())}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: "
        f"{', '.join(calls)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
        f"next message."
    )
