"""Pointers, sends and what they left behind, for tests of quotes."""

import itertools
from typing import Any

from agent.models import InboxItem, TurnEvent
from agent.safe_point import absorb
from quotes import ingress
from threads.models import Message, Thread
from threads.transcript import live_generation, lock_thread

_keys = itertools.count(1)


def at(source: Thread, message: Message | None = None) -> dict[str, Any]:
    """A pointer to a message, or to the whole conversation."""
    if message is None:
        return {"kind": "channel", "channel": source.channel}
    return {"kind": "message", "channel": source.channel, "message_id": message.pk}


def send(target: Thread, quote: Any, text: str = "Look at this", **options: Any) -> InboxItem:
    """Send the owner's words with a quote. With `confirmed` the sentence is, where none is given, what is asked now."""
    if "confirmed" in options and "confirm_text" not in options:
        seen = ingress.preview(target.owner, target.channel, quote)
        options["confirm_text"] = seen["confirm_text"]
    key = options.pop("client_key", None) or f"quote-{next(_keys)}"
    return ingress.send(target.owner, target.channel, text, client_key=key, quote=quote, **options)


def take_in(target: Thread) -> list[Message]:
    """Make what waits rows of the record, as a turn's safe point does."""
    from django.db import transaction

    with transaction.atomic():
        locked = lock_thread(target.pk)
        items = list(InboxItem.objects.filter(thread=target, state="waiting").order_by("pk"))
        absorb(locked, live_generation(locked), items)
    return [InboxItem.objects.get(pk=item.pk).message for item in items]


def stored(target: Thread) -> list[tuple[str, int]]:
    """What a refused send must not change: how many rows of each kind the conversation has."""
    return [(model.__name__, model.objects.filter(thread=target).count()) for model in (InboxItem, Message, TurnEvent)]
