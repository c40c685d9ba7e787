"""Dropping thinking once: newer models bind a thinking block to every byte before it and refuse any other."""

from agent.models import ToolCall
from llm.catalog import Model
from threads.models import Generation, Message, Thread


def drop_thinking(thread: Thread, generation: Generation, model: Model) -> None:
    """From here on send no thinking of the rows that stand: a cut like any other, so that earlier calls can still be
    rebuilt. A model that demands it gets that of the open round of tools all the same. The thread is locked."""
    kept = _open_round(thread) if model.demands_thinking_in_open_round else None
    newest = Message.objects.filter(thread=thread).order_by("-id").values_list("id", flat=True).first() or 0
    generation.cut += 1
    generation.thinking_from = kept or newest + 1
    generation.save(update_fields=["cut", "thinking_from"])


def _open_round(thread: Thread) -> int | None:
    """The answer whose results of tools the model reads next: nobody spoke since, and no answer followed."""
    spoken = Message.objects.filter(
        thread=thread,
        role__in=(Message.Role.USER, Message.Role.ASSISTANT),
        model_visible=True,
        wire__isnull=False,
        left_at_cut__isnull=True,
    )
    last = spoken.order_by("-id").values_list("id", flat=True).first()
    return last if last is not None and ToolCall.objects.filter(message_id=last).exists() else None
