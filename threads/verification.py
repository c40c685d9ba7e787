"""Proof that the record still holds what was sent: each turn request is rebuilt and compared by its digest."""

import hashlib
from dataclasses import dataclass, field

from llm.models import ModelCall
from llm.wire import anchors_from_json, body_bytes, body_sha256
from threads.models import Generation, Thread
from threads.request import rows_of_call, wire_messages


@dataclass(frozen=True)
class Finding:
    """A call that cannot be proved, and why. The sentence holds no word of the conversation."""

    call_id: int
    sentence: str


@dataclass
class Report:
    """What verifying one thread found: its turn requests, how many of them were proved, and what differs."""

    calls: int = 0
    proved: int = 0
    findings: list[Finding] = field(default_factory=list)


def verify_thread(thread: Thread) -> Report:
    """Rebuild every turn request ever made for a thread, from the record alone, failed and interrupted ones too."""
    report = Report()
    generations = {generation.pk: generation for generation in Generation.objects.filter(thread=thread)}
    calls = ModelCall.objects.filter(thread_id=thread.pk, purpose=ModelCall.Purpose.TURN)
    for call in calls.select_related("header").order_by("pk").iterator(chunk_size=500):
        report.calls += 1
        sentence = difference(call, generations.get(call.generation_id or 0))
        if sentence:
            report.findings.append(Finding(call.pk, sentence))
        else:
            report.proved += 1
    return report


def difference(call: ModelCall, generation: Generation | None) -> str:
    """Why the record does not give this call's request again; blank when it does, byte for byte."""
    if generation is None:
        return "its generation is not in the record of this conversation"
    if hashlib.sha256(call.header.text.encode()).hexdigest() != call.header_id:
        return "its header is not what its digest says"
    try:
        body = rebuild(call, generation)
    except (ValueError, KeyError, TypeError) as error:
        return f"its request cannot be built from the record: {type(error).__name__}"
    if body_sha256(body) != call.body_sha256:
        return "the record gives another request than the one that was sent"
    return ""


def rebuild(call: ModelCall, generation: Generation) -> bytes:
    """The body of a turn request, as it went out."""
    messages = wire_messages(
        generation.opening,
        rows_of_call(generation.pk, call.last_message_id or 0, call.cut),
        model_name=call.model,
        thinking_from=call.thinking_from,
    )
    return body_bytes(call.header.text, messages, anchors_from_json(call.anchors), call.max_tokens)
