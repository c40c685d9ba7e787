"""The one request of a run: composed, recorded, sent, and closed. One request, no loop and no second model."""

import asyncio
from dataclasses import dataclass

from django.db import transaction

from agent import prefix
from agent.policy import SHADOW_TOOL
from agent.registry import get
from llm import budgets
from llm.calls import Answered, Prepared, ask
from llm.errors import ModelError
from llm.estimates import estimate_tokens
from llm.events import Answer, StreamEvent
from llm.ledger import close_call, open_call, outcome_of
from llm.models import ModelCall
from llm.wire import Anchor, WireMessage, betas_of, body_bytes, body_sha256, header_text, remember_header
from maxclaw.database_threads import in_database
from memory.fact_rows import lock_threads
from memory.refusals import FactRefused
from shadow import attempts, question, room
from shadow.material import Material
from shadow.models import ShadowRun
from threads.models import Thread
from threads.visibility import Level

CALL_SECONDS = 300.0


class RunIsOver(Exception):
    """Nothing may go out: the run was ended by somebody else, or its conversation is not at the level any more at which
    it was read."""


@dataclass(frozen=True)
class _Request:
    header: str
    messages: list[WireMessage]
    anchors: list[Anchor]


async def answer_of(run: ShadowRun, material: Material, asked: str) -> Answer:
    """Ask, and close the call. Raises ModelError, BudgetExhausted, RunIsOver. A request that is cancelled ends at once
    and is closed as interrupted, with what it is known to have used."""
    opened: list[Prepared] = []
    request = await in_database(_compose, material, asked)

    async def build(_model: object, attempt: int, max_tokens: int | None) -> Prepared:
        prepared = await in_database(_open, run, material, request, attempt, max_tokens)
        opened.append(prepared)
        return prepared

    # Of the model that the person talks to, a question that nobody waits for tells nothing: theirs go on as before.
    cold = material.call is None
    try:
        answered = await ask(
            [material.model], build, _no_event, _no_retry, retries=0, seconds=CALL_SECONDS, tells_health=cold
        )
    except asyncio.CancelledError:
        if opened:
            await asyncio.shield(in_database(_close_interrupted, opened[-1]))
        raise
    await in_database(_close, answered)
    return answered.answer


def check_level(material: Material) -> None:
    """Raises RunIsOver when the conversation became stricter, or went, since it was read: what was read may not go to
    whom it was meant for."""
    now = Thread.objects.filter(pk=material.thread.pk, deleted__isnull=True).first()
    if now is None or Level.of_thread(now) != Level.of_thread(material.thread):
        raise RunIsOver


def _compose(material: Material, asked: str) -> _Request:
    """Hot: the conversation's own last request, byte for byte, its answer, and the question. Cold: the question."""
    if material.call is not None and material.answer is not None:
        messages, anchors = prefix.followed_by(material.call, material.generation, material.answer, asked)
        return _Request(material.call.header.text, messages, anchors)
    tool = get(SHADOW_TOOL)
    assert tool is not None
    header = header_text(model=material.model, tools=[tool.wire()], system=question.COLD_SYSTEM)
    return _Request(header, [question.cold_message(asked)], [])


def _open(run: ShadowRun, material: Material, request: _Request, attempt: int, max_tokens: int | None) -> Prepared:
    model, hot = material.model, material.call
    limit = max_tokens or room.answer_tokens(model, hot=hot is not None)
    body = body_bytes(request.header, request.messages, request.anchors, limit)
    with transaction.atomic():
        try:
            # Whoever makes the conversation stricter goes first, or finds the run that names this call.
            lock_threads(material.thread.owner_id, {material.thread.pk})
        except FactRefused:
            raise RunIsOver from None
        check_level(material)
        whole = estimate_tokens(body.decode(), model)
        cached = 0 if hot is None else min(whole, _cached(hot))
        reserve = budgets.reserve(
            material.thread.owner, model, whole, limit, ModelCall.Purpose.SHADOW, expected_cache_read=cached
        )
        call = open_call(
            purpose=ModelCall.Purpose.SHADOW,
            owner_id=material.thread.owner_id,
            thread_id=material.thread.pk,
            generation_id=material.generation.pk,
            header=remember_header(request.header),
            model=model,
            body_sha256=body_sha256(body),
            last_message_id=None if hot is None else hot.last_message_id,
            cut=0 if hot is None else hot.cut,
            thinking_from=0 if hot is None else hot.thinking_from,
            anchors=request.anchors,
            max_tokens=limit,
            attempt=attempt,
            reserve=reserve,
        )
        if not attempts.name_call(run, call):
            raise RunIsOver
    return Prepared(call, model, body, betas_of(request.header), limit)


def _cached(call: ModelCall) -> int:
    """What of a request like this call's the provider is expected to hold."""
    return (call.cache_read_tokens or 0) + (call.cache_write_5m_tokens or 0) + (call.cache_write_1h_tokens or 0)


async def _no_event(_event: StreamEvent) -> None:
    return None


async def _no_retry(_error: ModelError, _will_retry: bool) -> None:
    return None


def _close(answered: Answered) -> None:
    prepared, said = answered.prepared, answered.answer
    close_call(
        prepared.call,
        outcome=outcome_of(said.stop_reason),
        usage=said.usage,
        stop_reason=said.stop_reason,
        first_token_ms=prepared.first_token_ms,
        total_ms=prepared.total_ms,
    )


def _close_interrupted(prepared: Prepared) -> None:
    close_call(
        prepared.call,
        outcome=ModelCall.Outcome.INTERRUPTED,
        usage=prepared.usage,
        first_token_ms=prepared.first_token_ms,
        total_ms=prepared.total_ms,
    )
