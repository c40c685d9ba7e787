"""A turn's request as the prefix of a later one: which it is, until when a provider keeps it, and what may follow it.

A prefix is no record of its own. It is the generation's newest turn request whose answer is complete, rebuilt from
frozen rows and proved by its digest, so any process can follow it and a restart keeps it.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Q

from agent.models import ToolCall
from llm.models import ModelCall
from llm.wire import SYSTEM, Anchor, WireMessage, anchors_from_json, canonical, split_blocks
from threads.models import Generation, Message
from threads.request import rows_of_call, wire_messages
from threads.transcript import text_block

LIFETIMES = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}
IN_PROGRESS = (
    "This call is still in progress in the original thread. This branch did not run it: there is no result, and this "
    "is no evidence."
)
LAST_ROW = 2**63 - 1


def lifetime(call: ModelCall) -> timedelta:
    """How long the provider keeps what the request wrote or read, from the start of the request on."""
    lifetimes = [anchor["ttl"] for anchor in call.anchors if anchor["at"] != SYSTEM]
    return LIFETIMES[lifetimes[-1] if lifetimes else "5m"]


def expires(call: ModelCall) -> datetime:
    """When the cache entry of a turn's request runs out: counted from the start of the newest request that wrote or
    read it, whatever that one was for."""
    reads = ModelCall.objects.filter(
        Q(cache_read_tokens__gt=0) | Q(first_token_ms__isnull=False),
        generation_id=call.generation_id,
        header_id=call.header_id,
        cut=call.cut,
        pk__gt=call.pk,
    )
    newest = reads.order_by("-pk").values_list("started", flat=True).first()
    return max(call.started, newest or call.started) + lifetime(call)


def newest_complete(generation: Generation) -> ModelCall | None:
    """The generation's newest turn request that got a whole answer, at whatever cut."""
    turns = ModelCall.objects.filter(generation_id=generation.pk, purpose=ModelCall.Purpose.TURN)
    complete = turns.filter(outcome=ModelCall.Outcome.COMPLETE, answer_message_id__isnull=False)
    return complete.select_related("header").order_by("-pk").first()


def followed_by(
    call: ModelCall, generation: Generation, answer: Message, question: str
) -> tuple[list[WireMessage], list[Anchor]]:
    """The request's messages as sent, its answer exactly as received, and one user message: the results of the answer's
    tool calls, then the question. Exactly two messages more than were sent.

    The anchors are the request's own. The new tail gets none: nobody reads it again, and writing costs more. Raises
    ValueError where the answer holds nothing.
    """
    if not answer.wire or answer.wire == "[]":
        raise ValueError("an answer that holds nothing cannot be followed")
    messages = wire_messages(
        generation.opening,
        rows_of_call(generation.pk, call.last_message_id or 0, call.cut),
        model_name=call.model,
        thinking_from=call.thinking_from,
    )
    blocks = [*results(answer), canonical(text_block(question))]
    messages.append(WireMessage(answer.pk, "assistant", answer.wire))
    messages.append(WireMessage(LAST_ROW, "user", f"[{','.join(blocks)}]"))
    return messages, anchors_from_json(call.anchors)


def results(answer: Message) -> Iterator[str]:
    """A block for each tool call of the answer, in order: what its result's row holds, or that there is none."""
    stored = {
        call.call_id: call.result.wire
        for call in ToolCall.objects.filter(message=answer).select_related("result")
        if call.result is not None and call.result.wire
    }
    for block in json.loads(answer.wire or "[]"):
        if block.get("type") != "tool_use":
            continue
        if block["id"] in stored:
            yield from split_blocks(stored[block["id"]])
        else:
            content = [text_block(IN_PROGRESS)]
            yield canonical({"type": "tool_result", "tool_use_id": block["id"], "content": content})
