"""The tool with which a shadow proposes. Every conversation's tool list has it from its first request on, because a
list that changed would be another prefix; ordinary turns refuse it."""

from typing import Any

from agent.policy import SHADOW_TOOL
from agent.registry import ToolContext, ToolError, ToolOutput, tool
from memory.fact_arguments import EVIDENCE, FACT, FACT_REQUIRED

ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        # What a fact is for a project is not a single conversation's to say.
        **{name: schema for name, schema in FACT.items() if name != "project"},
        "evidence": EVIDENCE,
        "replaces": {"type": "string", "description": "the id of what this takes the place of: f:12 or p:12"},
    },
    "required": [*FACT_REQUIRED, "evidence"],
    "additionalProperties": False,
}
LIST = "facts"
ITEMS_MAX = 50


@tool(
    name=SHADOW_TOOL,
    description=(
        "For the framework's shadow turns alone, which ask for it in so many words; it is refused at any other time. "
        "Propose facts, all of them in one call, as those turns say."
    ),
    parameters={
        "type": "object",
        "properties": {LIST: {"type": "array", "items": ITEM, "maxItems": ITEMS_MAX}},
        "required": [LIST],
        "additionalProperties": False,
    },
)
def shadow_memory_propose(_context: ToolContext, _arguments: dict[str, Any]) -> ToolOutput:
    """No turn runs this: the policy refuses it before, and a shadow's answer is read, not run."""
    raise ToolError("This is not a shadow turn.")
