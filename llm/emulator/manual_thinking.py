"""Thinking with a budget of tokens, as older models have it: switched on by `thinking.type: enabled`, and demanded
before the last round of tool calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from llm.emulator.errors import ApiError
from llm.emulator.models import EmulatedModel
from llm.emulator.turns import Turn

BUDGET_MIN_TOKENS = 1_024
THINKING_KINDS = ("thinking", "redacted_thinking")


def check_budget(thinking: Mapping[str, Any], model: EmulatedModel) -> None:
    """Raise ApiError where the model knows no budget, or this is none."""
    if not model.manual_thinking:
        raise ApiError(
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.'
        )
    if "budget_tokens" not in thinking:
        raise ApiError("thinking.enabled.budget_tokens: Field required")
    budget = thinking["budget_tokens"]
    if not isinstance(budget, int) or isinstance(budget, bool):
        raise ApiError("thinking.enabled.budget_tokens: Input should be a valid integer")
    if budget < BUDGET_MIN_TOKENS:
        raise ApiError(f"thinking.enabled.budget_tokens: Input should be greater than or equal to {BUDGET_MIN_TOKENS}")


def check_request(budget: int, max_tokens: int | None, choice: str, turns: Sequence[Turn]) -> None:
    """Raise ApiError for a budget that leaves no room (`max_tokens` None: tokens are only counted), a forced tool, and
    a last round of tool calls that lacks its thinking."""
    if max_tokens is not None and max_tokens <= budget:
        raise ApiError("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if choice in ("any", "tool"):
        raise ApiError("Thinking may not be enabled when tool_choice forces tool use.")
    round_of_tools = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    if round_of_tools is None or not _answers_tools(turns[-1]):
        return
    number, index, first = round_of_tools.blocks[0]
    if first["type"] not in THINKING_KINDS:
        raise ApiError(
            f"messages.{number}.content.{index}.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{first['type']}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
            "block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include "
            "thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
        )


def stripped_before(turns: Sequence[Turn]) -> int:
    """The place of the turn from which on a model that strips thinking still reads it: the last that a person said,
    where results of tools stand alone for none."""
    said = (place for place, turn in enumerate(turns) if turn.role == "user" and not _answers_tools(turn))
    return max(said, default=0)


def _answers_tools(turn: Turn) -> bool:
    return turn.role == "user" and all(block["type"] == "tool_result" for _, _, block in turn.blocks)
