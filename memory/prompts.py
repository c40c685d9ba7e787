"""What the system text of every conversation says of memory."""

from agent.prompts import part
from memory import routing


@part(10, "write routing")
def write_routing() -> str:
    """Where what is worth keeping is written."""
    return routing.render_for(routing.SYSTEM)
