"""From the record to the messages of a request: one way, for the turn that sends it and for the proof
afterwards."""

from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Q

from llm.wire import WireMessage, without_thinking
from threads.models import Message

ASSISTANT: str = Message.Role.ASSISTANT.value
TOOL: str = Message.Role.TOOL.value


class Row(NamedTuple):
    """What a request needs of a message: `wire` is the exact JSON array text of its content blocks."""

    id: int
    role: str
    wire: str
    model: str


def in_call(generation_id: int, last_message_id: int, cut: int) -> Q:
    """The rows of a call: of its generation, visible to the model and sent to it, not after the call's last
    message, and not gone at its cut."""
    return Q(generation_id=generation_id, model_visible=True, wire__isnull=False, id__lte=last_message_id) & Q(
        Q(left_at_cut__isnull=True) | Q(left_at_cut__gt=cut)
    )


def rows_of_call(generation_id: int, last_message_id: int, cut: int) -> list[Row]:
    """The rows of a call in order, in one query."""
    rows = (
        Message.objects.filter(in_call(generation_id, last_message_id, cut))
        .order_by("id")
        .values_list("id", "role", "wire", "model")
    )
    return [Row._make(row) for row in rows]


def wire_messages(
    opening: str | None, rows: Iterable[Row], *, model_name: str, thinking_from: int
) -> list[WireMessage]:
    """The messages of a request: the generation's opening as the first (its id is 0), then one for each row,
    the tool results of one round joined.

    Thinking is kept of rows with an id of at least `thinking_from` that `model_name` made; a row with nothing
    else is left out.
    """
    messages = [] if opening is None else [WireMessage(0, "user", opening)]
    previous_was_tool = False
    # Ten thousand rows pass here before each request: nothing is looked up in the loop that can be before it.
    for row_id, role, wire, model in rows:
        if role == ASSISTANT:
            content: str | None = wire
            if not (row_id >= thinking_from and model == model_name) and "thinking" in wire:
                content = without_thinking(wire)
            if content is None or content == "[]":
                continue
            messages.append(WireMessage(row_id, "assistant", content))
            previous_was_tool = False
        elif previous_was_tool and role == TOOL:
            before = messages[-1].content
            messages[-1] = WireMessage(row_id, "user", f"{before[:-1]},{wire[1:]}")
        else:
            messages.append(WireMessage(row_id, "user", wire))
            previous_was_tool = role == TOOL
    return messages
