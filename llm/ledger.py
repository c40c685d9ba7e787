"""The ledger: one row for each request made, opened before it goes out and closed when its outcome is known.

Synchronous; each function runs in its caller's transaction.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from django.db.models import Q

from llm import catalog, estimates
from llm.catalog import Model
from llm.errors import ModelError
from llm.models import ModelCall, RequestHeader
from llm.prices import Usage, cost, prices_to_json
from llm.wire import Anchor, anchors_to_json

if TYPE_CHECKING:
    from llm.budgets import Reservation

# The digest of a call that was emptied by an erasure; every other call has one of its own.
ERASED_SHA256 = ""
# What says, when a call is closed, of what it was or what was answered.
SPOKEN_OF = frozenset({"answer_message_id", "request_id", "error"})
# Stop reasons of an answer that an output limit or the window cut off.
CUT_REASONS = frozenset({"max_tokens", "model_context_window_exceeded"})


def open_call(
    *,
    purpose: str,
    owner_id: int | None,
    thread_id: int | None,
    generation_id: int | None,
    header: RequestHeader,
    model: Model,
    body_sha256: str,
    last_message_id: int | None,
    cut: int,
    thinking_from: int,
    anchors: Sequence[Anchor],
    max_tokens: int,
    attempt: int = 1,
    answer_message_id: int | None = None,
    reserve: "Reservation | None" = None,
    estimated_tokens: int | None = None,
) -> ModelCall:
    """Write the row of a request that is about to go out: one insert.

    `reserve` is what `budgets.reserve` gave in the same transaction. `estimated_tokens` is the whole body by
    `estimates.estimate_tokens` without a model, where the caller has it; else `calls.ask` takes samples. The
    usage that comes back corrects later estimates for this model.
    """
    return ModelCall.objects.create(
        purpose=purpose,
        owner_id=owner_id,
        thread_id=thread_id,
        generation_id=generation_id,
        header_id=header.pk,
        model=model.name,
        body_sha256=body_sha256,
        last_message_id=last_message_id,
        cut=cut,
        thinking_from=thinking_from,
        anchors=anchors_to_json(anchors),
        max_tokens=max_tokens,
        attempt=attempt,
        answer_message_id=answer_message_id,
        reserved_tokens=reserve.tokens if reserve else 0,
        reserved_cost=reserve.cost if reserve else None,
        estimated_tokens=estimated_tokens,
    )


def outcome_of(stop_reason: str) -> ModelCall.Outcome:
    """The outcome of an answer that ended with this stop reason."""
    return ModelCall.Outcome.CUT if stop_reason in CUT_REASONS else ModelCall.Outcome.COMPLETE


def close_call(
    call: ModelCall,
    *,
    outcome: str,
    usage: Usage | None = None,
    stop_reason: str = "",
    error: ModelError | None = None,
    first_token_ms: int | None = None,
    total_ms: int | None = None,
    answer_message_id: int | None = None,
) -> bool:
    """Write what became of a request: one update, price snapshot and cost included. `call` is brought up to
    date.

    Returns False, and changes nothing, when the call has an outcome already. The cost is null when a price
    that it needs is missing. Of a call whose conversation was erased meanwhile the numbers alone are written.
    """
    values: dict[str, object] = {
        "outcome": outcome,
        "stop_reason": stop_reason[:40],
        "first_token_ms": first_token_ms,
        "total_ms": total_ms,
    }
    if answer_message_id is not None:
        values["answer_message_id"] = answer_message_id
    if call.estimated_tokens is not None:
        values["estimated_tokens"] = call.estimated_tokens
    if usage is not None:
        values |= _spent(call.model, usage)
    if error is not None:
        values |= {
            "status_code": error.status,
            "request_id": error.request_id[:100],
            "error": error.detail,
        }
    # Two statements, so that each sees the row as it is: an erasure may commit while the first one waits for it.
    still_open = ModelCall.objects.filter(pk=call.pk, outcome="")
    if not still_open.exclude(body_sha256=ERASED_SHA256).update(**values):
        values = {name: value for name, value in values.items() if name not in SPOKEN_OF}
        if not still_open.filter(body_sha256=ERASED_SHA256).update(**values):
            return False
    for name, value in values.items():
        setattr(call, name, value)
    if usage is not None and usage.prompt_tokens and call.estimated_tokens:
        estimates.record(call.model, call.estimated_tokens, usage.prompt_tokens, in_ledger=True)
    return True


def _spent(model_name: str, usage: Usage) -> dict[str, object]:
    try:
        prices = catalog.get(model_name).prices_for(usage.prompt_tokens)
    except catalog.UnknownModel:
        prices = None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_tokens,
        "cache_write_5m_tokens": usage.cache_write_5m_tokens,
        "cache_write_1h_tokens": usage.cache_write_1h_tokens,
        "prices": prices_to_json(prices),
        "cost": cost(usage, prices),
    }


def close_open_calls(thread_id: int, *, started_before_call: int | None = None) -> int:
    """Close the thread's calls that nobody will: whoever made them lost the thread. Returns how many there
    were.

    `started_before_call` leaves calls with that id or a higher one open.
    """
    which = Q(thread_id=thread_id, outcome="")
    if started_before_call is not None:
        which &= Q(pk__lt=started_before_call)
    return ModelCall.objects.filter(which).update(outcome=ModelCall.Outcome.INTERRUPTED)
