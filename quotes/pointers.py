"""What a client sends of a quote: a pointer and nothing else. Everything it leads to is found on the server."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from agent.quoting import CONVERSATION, MESSAGE
from agent.refusals import Refused
from threads.access import MESSAGE_ID_MAX


@dataclass(frozen=True)
class Pointer:
    """One message (`message_id`) of the conversation `channel`, or the whole of it."""

    kind: str
    channel: str
    message_id: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The pointer as a client sends it."""
        message_id = {} if self.message_id is None else {"message_id": self.message_id}
        return {"kind": self.kind, "channel": self.channel, **message_id}


def parse(value: Any) -> Pointer:
    """The pointer in a decoded JSON value: {"kind": "message", "channel", "message_id": int} or {"kind": "channel",
    "channel"}, with no other key. Raises Refused."""
    if isinstance(value, dict) and isinstance(value.get("channel"), str):
        kind, message_id = value.get("kind"), value.get("message_id")
        if kind == CONVERSATION and value.keys() == {"kind", "channel"}:
            return Pointer(CONVERSATION, value["channel"])
        # Its digits, or a truth value, are no id here: what points at words is exact.
        if kind == MESSAGE and value.keys() == {"kind", "channel", "message_id"} and type(message_id) is int:
            if 0 < message_id <= MESSAGE_ID_MAX:
                return Pointer(MESSAGE, value["channel"], message_id)
            raise no_such_source()
    raise Refused(
        "bad-quote",
        _(
            "A quote points at a message (kind “message”, channel, message_id) or at a conversation (kind “channel”, "
            "channel), and says nothing else."
        ),
    )


def no_such_source() -> Refused:
    """The unknown, another owner's, and a real message of another conversation answer identically."""
    return Refused("no-such-source", _("There is no such message or conversation to quote. It may have been deleted."))
