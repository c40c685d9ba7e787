"""What the framework itself says when a generation opens."""

from django.utils import timezone

from agent import policy
from agent.opening import source
from maxclaw import clock
from threads.models import Generation, Thread

EARLIER = """\
This conversation has earlier messages that are not in this context. Section 10 of the summary below, where there is
one, is a directory: to find old words again, search with search_memory, channel "{channel}" and a resource's name or
path as the query. Results are bounded windows with message ids; message_context_read opens one, and
message_history_read pages through the conversation. Not finding something there does not mean that it never was.\
"""


# However many generations carry them on, instructions do not take the context.
STANDING_MAX_CHARS = 8_000
STANDING_NAMED_MAX = 40
STANDING_LEFT_OUT = (
    "({count} more hold that have no room here, the newest in {ids}: message_context_read opens each. Read them before "
    "work that they may be about.)"
)


@source(0, "channel")
def fixed_lines(thread: Thread, generation: Generation) -> str:
    """Which conversation this is, when it opened, and how old words are found."""
    zone = thread.owner.zone
    opened = timezone.localtime(clock.now(), zone)
    lines = [
        "This is the opening of the context, written by the framework, not by the user.",
        f"channel: {thread.channel}",
        f"generation: {generation.ordinal} (id {generation.pk})",
        f"opened: {opened:%A %Y-%m-%d %H:%M} {thread.owner.time_zone}",
    ]
    if thread.kind == Thread.Kind.TASK:
        lines.append("This is a task: work on it alone, then end with the result. It is delivered to who asked.")
    return "\n".join(lines)


@source(5, "unavailable tools")
def unavailable_tools(thread: Thread, _generation: Generation) -> str | None:
    """Which tools of the list that all conversations share may not run in this one."""
    return policy.of_turn(thread).note()


@source(10, "earlier generations")
def earlier_generations(thread: Thread, generation: Generation) -> str | None:
    """Older words of the same conversation are not in this context; say so, and say how they are read. Those of a
    branch, made where that was not yet said, are in the conversation that it branches from."""
    origin = thread.copied_from
    if generation.ordinal > 1:
        return EARLIER.format(channel=thread.channel)
    if origin is not None and origin.generation.ordinal > 1:
        return EARLIER.format(channel=origin.thread.channel)
    return None


@source(20, "standing instructions")
def standing_instructions(_thread: Thread, generation: Generation) -> str | None:
    """The user's instructions that hold, word for word: carried from opening to opening until withdrawn. Of more than
    STANDING_MAX_CHARS characters the newest are shown that have room; of the others it is said where they stand."""
    if not generation.standing:
        return None
    lines = [f'- "{entry["text"]}" (m:{entry["message_id"]})' for entry in generation.standing]
    room = STANDING_MAX_CHARS
    shown: set[int] = set()
    for place in reversed(range(len(lines))):
        if len(lines[place]) + 1 <= room:
            room -= len(lines[place]) + 1
            shown.add(place)
    said = [line for place, line in enumerate(lines) if place in shown]
    left = [entry["message_id"] for place, entry in enumerate(generation.standing) if place not in shown]
    if left:
        named = ", ".join(f"m:{pk}" for pk in list(dict.fromkeys(reversed(left)))[:STANDING_NAMED_MAX])
        said.append(STANDING_LEFT_OUT.format(count=len(left), ids=named))
    return "\n".join(["Standing instructions, in the person's own words:", *said])


@source(30, "summary")
def summary_of_what_was_said(_thread: Thread, generation: Generation) -> str | None:
    """The summary of the generation before, written when it ended."""
    if not generation.summary_before:
        return None
    return f"Summary of what was said before:\n\n{generation.summary_before}"
