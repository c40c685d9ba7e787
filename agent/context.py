"""What the framework itself says when a generation opens."""

from django.utils import timezone

from agent.opening import source
from maxclaw import clock
from threads.models import Generation, Thread


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


@source(10, "earlier generations")
def earlier_generations(thread: Thread, generation: Generation) -> str | None:
    """Older words of the same conversation are not in this context; say so, and say how they are read."""
    if generation.ordinal == 1:
        return None
    return (
        "This conversation has earlier messages that are not in this context. Read them with "
        f'message_history_read and channel "{thread.channel}"; each page is bounded and names the message ids and '
        "how to go further back. Not finding something there does not mean that it never was."
    )
