"""What memory says when a generation opens."""

from collections.abc import Sequence

from agent.opening import source_ahead
from memory import briefing
from memory.fact_search import FactHit
from threads.models import Generation, Thread


@source_ahead(40, "briefing", briefing.look)
def what_is_remembered(thread: Thread, generation: Generation, near: Sequence[FactHit]) -> str | None:
    """Facts near to what the generation opens for."""
    return briefing.write(thread, generation, near)
