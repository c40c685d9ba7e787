"""Having a generation's summary written: along the warm prefix, else from pages of the transcript, else by rule.

Along the warm prefix (the same header and messages, and one question more) where the provider's cache still holds it.
Where that cannot be had, the light models read the rendered transcript in pages. What no model writes is made by rule,
so that compaction never blocks a conversation.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from agent import quoting, summary
from agent.context import standing_instructions
from agent.summary import Summary
from agent.summary_check import check
from agent.summary_record import ThreadRecord
from llm import budgets, calls, catalog, router
from llm.calls import Prepared
from llm.catalog import Model
from llm.errors import ModelError
from llm.estimates import estimate_tokens
from llm.events import StreamEvent
from llm.ledger import close_call, open_call, outcome_of
from llm.models import ModelCall
from llm.wire import (
    SYSTEM,
    Anchor,
    WireMessage,
    betas_of,
    body_bytes,
    body_sha256,
    canonical,
    header_text,
    remember_header,
)
from maxclaw import clock
from maxclaw.database_threads import in_database
from maxclaw.text import head_and_tail
from threads.models import Generation, Message, Thread
from threads.request import rows_of_call, wire_messages
from threads.transcript import lock_thread, text_block

logger = logging.getLogger("maxclaw.compaction")

SUMMARY_MAX_TOKENS = 6_000
CALL_TIMEOUT_SECONDS = 180  # each call: a long transcript has many
ABANDONED_LOOKED_FOR = timedelta(days=1)
ATTEMPTS = 2
PAGE_TOKENS = 12_000
ROW_MAX_CHARS = 4_000
LAST_ROW = 2**63 - 1
COLD_SYSTEM_TEXT = "You write summaries of conversations."


class AlreadyClaimed(Exception):
    """Another worker is summarising the same generation in the background."""


NO_ANSWER = (ModelError, router.NoModelForCategory, budgets.BudgetExhausted, AlreadyClaimed)


@dataclass
class Material:
    """What a summary is made of, read in one transaction: the rows, and the newest turn request if it is warm. What
    was said before is known from the generation's record of it, never from the rendered opening: what else that says
    (facts, rules of a project) comes from where it stands, and is no part of any summary."""

    thread: Thread
    generation: Generation
    rows: list[Message]
    last_id: int
    warm: ModelCall | None


@dataclass(frozen=True)
class Page:
    """Some rows in a row, and how the light model reads them."""

    rows: list[Message]
    text: str


@dataclass(frozen=True)
class Request:
    """A request for a summary, for one model: header text, messages, anchors, and what the newest row in it is."""

    header: str
    messages: list[WireMessage]
    anchors: list[Anchor]
    last_message_id: int | None


Compose = Callable[[Model], Request]


async def summarize(material: Material, *, background: bool) -> Summary | None:
    """A checked summary of the generation; by rule where no model writes one. Never raises a model's error.

    In the background, where nobody waits and a healthy context stands, only the warm prefix is asked, without
    retries, and a failure changes nothing: None.
    """
    text, go_on_cold = None, not background
    if material.warm is not None:
        try:
            text = await _asked_twice(lambda missing: _ask_warm(material, missing, background))
            go_on_cold = False
        except NO_ANSWER as error:
            _log(material, error)
    if go_on_cold:
        text = await _summarize_cold(material)
    if text is not None:
        return await in_database(_checked, material, text)
    return None if background else summary.by_rule(material.rows, material.generation.summary_before)


def _checked(material: Material, text: str) -> Summary:
    with transaction.atomic():
        return check(text, ThreadRecord(material.thread, material.generation))


def _log(material: Material, error: Exception) -> None:
    logger.warning("No summary of generation %s: %s.", material.generation.pk, type(error).__name__)


async def _asked_twice(ask: Callable[[Sequence[int]], Awaitable[str]]) -> str | None:
    """An answer with all ten sections. `ask` gets the sections that the attempt before lacked. None: there is none."""
    missing: list[int] = []
    for _attempt in range(ATTEMPTS):
        text = await ask(missing)
        missing = summary.missing_sections(text)
        if not missing:
            return text
    return None


async def _ask_warm(material: Material, missing: Sequence[int], background: bool) -> str:
    call = material.warm
    assert call is not None
    model = catalog.load_catalog().models.get(call.model)
    if model is None or not model.reads(material.thread.category):
        # The catalog or the conversation's category was changed since.
        raise router.NoModelForCategory(call.model)
    question = canonical([text_block(summary.question(material.rows, missing))])

    def compose(model: Model) -> Request:
        generation = Generation.objects.get(pk=material.generation.pk)
        messages = wire_messages(
            generation.opening,
            rows_of_call(generation.pk, LAST_ROW, generation.cut),
            model_name=model.name,
            thinking_from=generation.thinking_from,
        )
        # Anchors where the prefix already has its entries; none on the tail, which nobody reads again.
        anchors = [Anchor(SYSTEM, model.system_lifetime)]
        if call.last_message_id in {message.last_id for message in messages}:
            anchors.append(Anchor(call.last_message_id or 0, model.message_lifetime))
        messages.append(WireMessage(LAST_ROW, "user", question))
        return Request(call.header.text, messages, anchors, call.last_message_id)

    return await _run(material, [model], compose, background=background)


async def _summarize_cold(material: Material) -> str | None:
    """The light models write the summary page by page: each page with the summary so far. A page of which they make
    none is added by rule, and the pages before it stay. None when no page was written by a model."""
    text = material.generation.summary_before
    written, reachable = False, True
    for page in pages(material.rows, catalog.palette(catalog.LIGHT)[0]):
        answer = None
        if reachable:
            try:
                answer = await _ask_page(material, page, text)
            except NO_ANSWER as error:
                _log(material, error)
                # Where all models are down the next page would only wait as long.
                reachable = isinstance(error, ModelError) and error.kind not in router.HEALTH_KINDS
        written = written or answer is not None
        text = answer or summary.by_rule(page.rows, text).text
    return text if written else None


async def _ask_page(material: Material, page: Page, so_far: str) -> str | None:
    models = router.candidates(catalog.LIGHT, material.thread.category)
    standing = standing_instructions(material.thread, material.generation)
    before = f"{standing}\n\n" if standing else ""

    async def ask(missing: Sequence[int]) -> str:
        words = f"{before}{_so_far(so_far)}{page.text}\n\n{summary.question(page.rows, missing)}"
        messages = [WireMessage(1, "user", canonical([text_block(words)]))]

        def compose(model: Model) -> Request:
            return Request(header_text(model=model, tools=[], system=COLD_SYSTEM_TEXT), messages, [], None)

        return await _run(material, models, compose, background=False)

    return await _asked_twice(ask)


def _so_far(text: str) -> str:
    return f"The summary so far:\n\n{text}\n\nThe conversation goes on:\n\n" if text else ""


async def _run(material: Material, models: Sequence[Model], compose: Compose, *, background: bool) -> str:
    asked: Prepared | None = None

    async def build(model: Model, attempt: int, max_tokens: int | None) -> Prepared:
        nonlocal asked
        asked = await in_database(_open, material, model, compose, attempt, max_tokens, background)
        return asked

    async def on_event(_event: StreamEvent) -> None:
        """Nobody watches a summary grow."""

    async def on_retry(_error: ModelError, _will_retry: bool) -> None:
        """Nothing was shown of the attempt."""

    retries = 0 if background else None
    try:
        answered = await calls.ask(models, build, on_event, on_retry, retries=retries, seconds=CALL_TIMEOUT_SECONDS)
    except BaseException:
        if asked is not None:
            # Does nothing to a failed call: that is closed already.
            await asyncio.shield(in_database(close_call, asked.call, outcome=ModelCall.Outcome.INTERRUPTED))
        raise
    answer, prepared = answered.answer, answered.prepared
    await in_database(
        lambda: close_call(
            prepared.call,
            outcome=outcome_of(answer.stop_reason),
            usage=answer.usage,
            stop_reason=answer.stop_reason,
            first_token_ms=prepared.first_token_ms,
            total_ms=prepared.total_ms,
        )
    )
    return answer.text


def _open(
    material: Material, model: Model, compose: Compose, attempt: int, max_tokens: int | None, background: bool
) -> Prepared:
    request = compose(model)
    limit = max_tokens or min(model.answer_tokens, SUMMARY_MAX_TOKENS)
    body = body_bytes(request.header, request.messages, request.anchors, limit)
    with transaction.atomic():
        reserve = None
        if background:
            _claim(material)
            # A turn never waits for a budget; what runs beside it does.
            tokens = estimate_tokens(body.decode(), model)
            reserve = budgets.reserve(material.thread.owner, model, tokens, limit, ModelCall.Purpose.COMPACTION)
        else:
            lock_thread(material.thread.pk)  # no call of a conversation is written behind its erasure
        call = open_call(
            purpose=ModelCall.Purpose.COMPACTION,
            owner_id=material.thread.owner_id,
            thread_id=material.thread.pk,
            generation_id=material.generation.pk,
            header=remember_header(request.header),
            model=model,
            body_sha256=body_sha256(body),
            last_message_id=request.last_message_id,
            cut=material.generation.cut,
            thinking_from=material.generation.thinking_from,
            anchors=request.anchors,
            max_tokens=limit,
            attempt=attempt,
            reserve=reserve,
        )
    return Prepared(call, model, body, betas_of(request.header), limit)


def _claim(material: Material) -> None:
    """Hold the thread until this transaction ends, and see that no other worker has an open call: the call that is
    opened next is this one's claim. Raises AlreadyClaimed."""
    thread = lock_thread(material.thread.pk)
    open_calls = ModelCall.objects.filter(
        generation_id=material.generation.pk,
        purpose=ModelCall.Purpose.COMPACTION,
        outcome="",
        started__gt=clock.now() - timedelta(seconds=CALL_TIMEOUT_SECONDS),
    )
    if thread.state != Thread.State.IDLE or open_calls.exists():
        raise AlreadyClaimed


def close_abandoned(now: datetime) -> int:
    """Close the calls for summaries whose process was killed without a lease, which a sweep would have found. Returns
    how many there were."""
    lapsed = now - timedelta(seconds=CALL_TIMEOUT_SECONDS)
    open_calls = ModelCall.objects.filter(
        purpose=ModelCall.Purpose.COMPACTION, outcome="", started__gt=lapsed - ABANDONED_LOOKED_FOR, started__lt=lapsed
    )
    return open_calls.update(outcome=ModelCall.Outcome.INTERRUPTED)


def pages(rows: list[Message], model: Model) -> list[Page]:
    """The rendered rows, tagged with their ids, in pages of about PAGE_TOKENS tokens."""
    found: list[Page] = []
    on_page: list[Message] = []
    lines: list[str] = []
    room = PAGE_TOKENS
    for row in rows:
        line = f"m:{row.pk} {row.role}: {_shown(row)}"
        tokens = estimate_tokens(line, model)
        if on_page and tokens > room:
            found.append(Page(on_page, "\n\n".join(lines)))
            on_page, lines, room = [], [], PAGE_TOKENS
        on_page.append(row)
        lines.append(line)
        room -= tokens
    return [*found, Page(on_page, "\n\n".join(lines))] if on_page else found


def _shown(row: Message) -> str:
    """What a row says, and what it quotes: the summary's model sees neither otherwise."""
    said = head_and_tail(row.text, ROW_MAX_CHARS, " [...] ")
    quote = row.meta.get("quote")
    return f"{said}\n{head_and_tail(quoting.note(quote), ROW_MAX_CHARS, ' [...] ')}" if quote else said
