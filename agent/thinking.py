"""Dropping thinking once: newer models bind a thinking block to every byte before it and refuse any other."""

from django.utils.translation import gettext as _

from threads.models import Generation, Message, Thread


def drop_thinking(thread: Thread, generation: Generation) -> None:
    """From here on send no thinking of the rows that stand: a cut like any other, so that earlier calls can still be
    rebuilt. The thread is locked."""
    newest = Message.objects.filter(thread=thread).order_by("-id").values_list("id", flat=True).first() or 0
    generation.cut += 1
    generation.thinking_from = newest + 1
    generation.save(update_fields=["cut", "thinking_from"])


def thinking_dropped_sentence() -> str:
    return _("The model refused its own earlier reasoning, so it was left out and the question asked again.")
