"""How full the context is, how much of the last request the cache served, and what the conversation has cost."""

from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum

from llm import catalog, router
from llm.models import ModelCall
from threads.models import Generation, Thread

# A call that was cut short may have cost something although nobody told what it used.
_MAY_HAVE_COST = Q(input_tokens__isnull=False) | Q(outcome=ModelCall.Outcome.INTERRUPTED)


def meter_view(thread: Thread) -> dict[str, Any]:
    """What the meter shows: live tokens against the budget, the share of the last turn request of the live generation
    that was read from the cache, and the list-price cost of all the thread's calls.

    Tokens and budget are of one `model`, the one that answered last and counted them; before the first request it is
    the one that would answer, and there are no tokens. Null is what nobody told: `live_tokens` before the first
    request, `cache_read_share` of a server that says nothing about its cache, `budget` of a model that left the
    catalog. `cost_unknown` counts finished calls without a price: the sum is then a lower bound."""
    calls = ModelCall.objects.filter(thread_id=thread.pk, owner_id=thread.owner_id)
    money = calls.aggregate(known=Sum("cost"), unknown=Count("pk", filter=Q(cost__isnull=True) & _MAY_HAVE_COST))
    generation = Generation.objects.filter(thread=thread, ended__isnull=True).first()
    last = last_turn_call(generation.pk) if generation is not None else None
    name = last.model if last is not None else _next_model(thread)
    model = catalog.load_catalog().models.get(name)
    return {
        "model": name,
        "budget": model.context_budget if model is not None else None,
        "live_tokens": live_tokens(last) if last is not None else None,
        "cache_read_share": cache_read_share(last) if last is not None else None,
        "cost": str(money["known"] or Decimal(0)),
        "cost_unknown": money["unknown"],
    }


def _next_model(thread: Thread) -> str:
    """Name of the model that would answer now, blank without one."""
    try:
        return router.candidates("main", thread.category, thread.model)[0].name
    except router.NoModelForCategory:
        return ""


def last_turn_call(generation_id: int) -> ModelCall | None:
    """The newest turn request of a generation whose provider told what it counted."""
    turns = ModelCall.objects.filter(generation_id=generation_id, purpose=ModelCall.Purpose.TURN)
    return turns.filter(input_tokens__isnull=False).order_by("-id").first()


def prompt_tokens(call: ModelCall) -> int:
    """All tokens of a request, however they were read."""
    return (
        (call.input_tokens or 0)
        + (call.cache_read_tokens or 0)
        + (call.cache_write_5m_tokens or 0)
        + (call.cache_write_1h_tokens or 0)
    )


def live_tokens(call: ModelCall) -> int:
    """What the next request will hold at least: this one and its answer."""
    return prompt_tokens(call) + (call.output_tokens or 0)


def cache_read_share(call: ModelCall) -> float | None:
    """The part of a request that was read from the cache, 0 to 1; None where its server does not say."""
    whole = prompt_tokens(call)
    return call.cache_read_tokens / whole if whole and call.cache_read_tokens is not None else None


def model_choices(category: str) -> list[str]:
    """The models that the user may pick for a thread of this category: the main palette's that may read it."""
    return [model.name for model in catalog.palette(catalog.MAIN) if model.reads(category)]
