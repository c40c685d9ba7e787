"""What the ledger exports of a person, and what stays of it: numbers, so that no budget is reset by deleting."""

from collections.abc import Iterator
from typing import Any

from django.db.models import Q, QuerySet

from accounts import erasing
from accounts.models import User
from llm.ledger import ERASED_SHA256
from llm.models import ModelCall


def export(user: User) -> Iterator[dict[str, Any]]:
    """Model calls made for a person, as one dict each."""
    for call in erasing.in_batches(ModelCall.objects.filter(owner=user)):
        yield {
            "record": "model_call",
            "purpose": call.purpose,
            "generation": call.generation_id,
            "answer": call.answer_message_id,
            "model": call.model,
            "input_tokens": call.input_tokens,
            "output_tokens": call.output_tokens,
            "cache_read_tokens": call.cache_read_tokens,
            "cache_write_5m_tokens": call.cache_write_5m_tokens,
            "cache_write_1h_tokens": call.cache_write_1h_tokens,
            "started": call.started.isoformat(),
            "total_ms": call.total_ms,
            "cost_dollars": None if call.cost is None else str(call.cost),
            "outcome": call.outcome,
            "error": call.error,
        }


def erase_thread(thread: Any) -> None:
    """Calls of its own, and the owner's that speak of several conversations and therefore name none."""
    calls = ModelCall.objects.filter(Q(thread_id=thread.pk) | Q(owner_id=thread.owner_id, thread_id=None))
    _empty(calls.exclude(body_sha256=ERASED_SHA256))


def erase_user(user: User) -> None:
    calls = ModelCall.objects.filter(owner=user)
    _empty(calls)
    calls.update(owner=None)


def _empty(calls: QuerySet[ModelCall]) -> None:
    """Take out what a call speaks of. The digest goes too: it would confirm a guess at what was said, and without one
    nothing but numbers is written of a call that is still open (`ledger.close_call`)."""
    calls.update(
        thread_id=None,
        generation_id=None,
        last_message_id=None,
        answer_message_id=None,
        thinking_from=0,
        anchors=[],
        body_sha256=ERASED_SHA256,
        request_id="",
        error="",
    )
