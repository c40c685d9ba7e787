"""Which tools may run on a turn: one object decides, for each kind of turn.

A refused tool stays in the request's tool list, because the list is part of the cached prefix that all turns share.
What a conversation's turns may never run its openings say, so that no model tries.
"""

from dataclasses import dataclass

from agent import dispatch
from agent.registry import Tool
from threads.models import Thread

SHADOW_TOOL = "shadow_memory_propose"
NOTE = "Tools that may not run in this conversation, although they are in your list: {names}. Do that work yourself."


@dataclass(frozen=True)
class Policy:
    """`unavailable` are the tools that no turn of the conversation may run. `refusal(tool)` is None when the tool may
    run, else the sentence that the model reads."""

    last_request: bool = False
    unavailable: frozenset[str] = frozenset({SHADOW_TOOL})

    def refusal(self, tool: Tool | None, name: str) -> str | None:
        if tool is None:
            return f"There is no tool named {name}. Use one of the tools you were given."
        if name in self.unavailable:
            return f"{name} is not available in this turn. Go on without it."
        if self.last_request:
            return "The turn's step limit is reached: no tool runs any more. Answer with what you have."
        return None

    def note(self) -> str | None:
        """What an opening says of unavailable tools, None where there are none. The one for shadow turns is not named:
        the note is part of the prefix that such a turn follows, and would tell it that it may not call its only
        tool."""
        names = sorted(self.unavailable - {SHADOW_TOOL})
        return NOTE.format(names=", ".join(names)) if names else None


def of_turn(thread: Thread, *, last_request: bool = False) -> Policy:
    """The policy of a conversation's ordinary turns."""
    refused = {SHADOW_TOOL} if dispatch.may_start(thread) else {SHADOW_TOOL, dispatch.DISPATCH_TOOL}
    return Policy(last_request, frozenset(refused))
