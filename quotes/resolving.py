"""From a pointer to what it points at, as it is at this moment: title, text and both levels, all of it the server's."""

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from agent.quoting import CONVERSATION, card_of
from agent.refusals import Refused
from maxclaw.text import head
from quotes.confirmation import confirm_text
from quotes.pointers import Pointer, no_such_source
from threads.access import NoSuchThread, access_thread
from threads.models import Generation, Message, Thread
from threads.visibility import Level, needs_confirm

QUOTE_TEXT_MAX_CHARS = 32_000


@dataclass(frozen=True)
class Resolved:
    """A quote as it would be given now. `text` and `text_length` are a message's alone."""

    pointer: Pointer
    title: str
    generation_id: int | None
    text: str
    text_length: int
    source: Level
    target: Level
    needs_confirm: bool
    confirm_text: str

    def frozen(self, confirmed_at: datetime | None) -> dict[str, Any]:
        """The quote as the user row keeps it, see `agent.quoting`."""
        words = {"text": self.text, "text_length": self.text_length} if self.pointer.kind != CONVERSATION else {}
        return {
            "id": uuid.uuid4().hex,
            **self.pointer.as_json(),
            "title": self.title,
            "generation": self.generation_id,
            **words,
            "source_scope": self.source.scope,
            "source_category": self.source.category,
            "target_scope": self.target.scope,
            "target_category": self.target.category,
            "needs_confirm": self.needs_confirm,
            "confirm_text": self.confirm_text,
            "confirmed_at": confirmed_at and confirmed_at.isoformat(),
        }

    def preview(self) -> dict[str, Any]:
        """What a client may know before it sends: the card, and what there is to confirm."""
        card = card_of({**self.pointer.as_json(), "title": self.title})
        return {"quote": card, "needs_confirm": self.needs_confirm, "confirm_text": self.confirm_text}


def quotable_thread(user: User, channel: str) -> Thread:
    """The user's conversation with this channel, if it can be quoted. Raises Refused."""
    try:
        return quotable(access_thread(user, channel))
    except NoSuchThread:
        raise no_such_source() from None


def quotable(thread: Thread) -> Thread:
    """The thread. Raises Refused when its kind cannot be quoted: a branch of main or of a task is a conversation of its
    own, which the user made, and can be."""
    if thread.kind == Thread.Kind.MAIN:
        raise Refused("not-quotable", _("The main conversation cannot be quoted: it hears of every other."))
    if thread.kind == Thread.Kind.TASK:
        raise Refused("not-quotable", _("A task cannot be quoted. Quote what the conversation that started it says."))
    return thread


def resolve(pointer: Pointer, source: Thread, target: Thread) -> Resolved:
    """The quote of `source` for `target`, both of one owner and found by that owner's rights. Raises Refused for a
    message that cannot be quoted."""
    levels = Level.of_thread(source), Level.of_thread(target)
    text, length = "", 0
    if pointer.kind == CONVERSATION:
        live = Generation.objects.filter(thread=source, owner_id=source.owner_id).order_by("-ordinal")
        generation_id = live.values_list("pk", flat=True).first()
    else:
        message = _message(pointer, source)
        text, length = _beginning(message.text), len(message.text)
        generation_id = message.generation_id
    return Resolved(
        pointer=pointer,
        title=source.title,
        generation_id=generation_id,
        text=text,
        text_length=length,
        source=levels[0],
        target=levels[1],
        needs_confirm=needs_confirm(*levels),
        confirm_text=confirm_text(pointer.kind, levels[0], target),
    )


def _beginning(text: str) -> str:
    """What is quoted of a text: all of it, or its start, which never splits a sign. One that alone exceeds the limit is
    split all the same, for a quote has words."""
    return head(text, QUOTE_TEXT_MAX_CHARS) or text[:QUOTE_TEXT_MAX_CHARS]


def _message(pointer: Pointer, source: Thread) -> Message:
    """The message by channel and id together: a real id under a wrong channel would get round the levels."""
    message = Message.objects.filter(thread=source, owner_id=source.owner_id, pk=pointer.message_id or 0).first()
    if message is None:
        raise no_such_source()
    if message.role == Message.Role.EVENT or not message.model_visible:
        raise Refused("not-quotable", _("This line is the server's own and cannot be quoted."))
    if message.left_because == Message.LeftBecause.SUPERSEDED and not _stands_as_copy(message):
        raise Refused("not-quotable", _("This message was taken out of its conversation and cannot be quoted."))
    if not message.text.strip():
        raise Refused("not-quotable", _("This message has no words to quote, or not yet."))
    return message


def _stands_as_copy(message: Message) -> bool:
    """Whether a rewind that took the message away was undone: what stands then is a copy."""
    copies = Message.objects.filter(thread_id=message.thread_id, copied_from_id=message.pk)
    return copies.exclude(left_because=Message.LeftBecause.SUPERSEDED).exists()
