"""Which tools may run on a turn: one object decides, for each kind of turn.

A refused tool stays in the request's tool list, because the list is part of the cached prefix that all turns share.
"""

from dataclasses import dataclass

from agent.registry import Tool

SHADOW_TOOL = "shadow_memory_propose"


@dataclass(frozen=True)
class Policy:
    """`refusal(tool)` is None when the tool may run, else the sentence that the model reads."""

    last_request: bool = False

    def refusal(self, tool: Tool | None, name: str) -> str | None:
        if tool is None:
            return f"There is no tool named {name}. Use one of the tools you were given."
        if name == SHADOW_TOOL:
            return f"{name} is not available in this turn. Go on without it."
        if self.last_request:
            return "The turn's step limit is reached: no tool runs any more. Answer with what you have."
        return None


ORDINARY_TURN = Policy()
LAST_REQUEST = Policy(last_request=True)
