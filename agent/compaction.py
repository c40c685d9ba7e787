"""Renewing the context: a summary is made of the live generation, and a new one opens with it.

Along the warm prefix (the same header and messages, and one question more) where the provider's cache still holds it;
else the light model reads the rendered transcript in pages. A summary that fails in any way is made by rule, so that
compaction never blocks a conversation. Until the commit the old generation is live and whole.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils import translation
from django.utils.translation import gettext as _

from agent import meter, opening, quoting, summary
from agent.events import Event, emit_all
from agent.safe_point import append_notice
from agent.summary import Standing, Summary
from llm import budgets, catalog, provider, router
from llm.catalog import Model
from llm.errors import ModelError
from llm.estimates import estimate_tokens
from llm.events import Answer
from llm.ledger import close_call, open_call
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
from threads.lifecycle import settle
from threads.models import Generation, Message, Thread
from threads.request import rows_of_call, wire_messages
from threads.signals import SettledReason
from threads.transcript import ThreadGone, fold, live_generation, lock_thread, text_block

logger = logging.getLogger("maxclaw.compaction")

THRESHOLD_SHARE = 0.7  # of the budget, at a turn boundary
IDLE_SHARE = 0.35  # of the budget, on a thread that rests
IDLE_BEFORE_EXPIRY = timedelta(seconds=120)
WORTHWHILE_SHARE = 0.2  # of the budget, outside the opening: less would be cut again and again for nothing
SUMMARY_MAX_TOKENS = 6_000
SUMMARY_TIMEOUT_SECONDS = 180
ATTEMPTS = 2
PAGE_TOKENS = 12_000
ROW_MAX_CHARS = 4_000
LAST_ROW = 2**63 - 1
LIFETIMES = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}


@dataclass
class Material:
    """What a summary is made of, read in one transaction: the rows, and the newest turn request if it is warm."""

    thread: Thread
    generation: Generation
    rows: list[Message]
    last_id: int
    warm: ModelCall | None


def over_threshold(generation: Generation, live_tokens: int, model: Model) -> bool:
    """Whether the live context calls for a new generation at a turn boundary."""
    return live_tokens > THRESHOLD_SHARE * model.context_budget and worthwhile(generation, live_tokens, model)


def worthwhile(generation: Generation, live_tokens: int, model: Model) -> bool:
    """Whether a new generation would be notably smaller: what the opening takes stays."""
    fixed = estimate_tokens(generation.opening or "", model)
    return live_tokens - fixed > WORTHWHILE_SHARE * model.context_budget


def gather(thread_id: int) -> Material:
    """Read what the summary needs. Raises ThreadGone, NoLiveGeneration."""
    with transaction.atomic():
        thread = lock_thread(thread_id)
        generation = live_generation(thread)
        rows = list(
            Message.objects.filter(
                generation=generation, model_visible=True, wire__isnull=False, left_at_cut__isnull=True
            ).order_by("pk")
        )
        last = Message.objects.filter(thread=thread).order_by("-pk").values_list("pk", flat=True).first() or 0
        return Material(thread, generation, rows, last, warm_call(generation))


def warm_call(generation: Generation) -> ModelCall | None:
    """The generation's newest turn request, if its prefix is still in the provider's cache."""
    call = meter.last_turn_call(generation.pk)
    if call is None or call.cut != generation.cut or not (call.cache_read_tokens or meter.prompt_tokens(call)):
        return None
    return call if clock.now() < expires(call) else None


def expires(call: ModelCall) -> datetime:
    """When the cache entry that a request wrote or read runs out: counted from the start of the request."""
    lifetimes = [anchor["ttl"] for anchor in call.anchors if anchor["at"] != SYSTEM]
    return call.started + LIFETIMES[lifetimes[-1] if lifetimes else "5m"]


async def summarize(material: Material, *, background: bool) -> Summary | None:
    """A checked summary of the generation: asked for twice at most, then made by rule. Never raises a model's error.

    In the background, where nobody waits and a healthy context stands, a failure changes nothing: None.
    """
    known, said = _known_ids(material), _said_by_user(material)
    missing: list[int] = []
    for _attempt in range(ATTEMPTS):
        try:
            async with asyncio.timeout(SUMMARY_TIMEOUT_SECONDS):
                text = await _ask(material, missing, background)
        except (ModelError, TimeoutError, budgets.BudgetExhausted, router.NoModelForCategory) as error:
            logger.warning("No summary of generation %s: %s.", material.generation.pk, type(error).__name__)
            if background:
                return None
            break
        missing = summary.missing_sections(text)
        if not missing:
            return await in_database(summary.check, text, known, said)
    return None if background else summary.by_rule(material.rows, opening_text(material.generation))


def opening_text(generation: Generation) -> str:
    """What the live generation opened with, the summary of all before it included: nothing else holds that now."""
    blocks = json.loads(generation.opening) if generation.opening else []
    return "\n".join(block["text"] for block in blocks)


async def _ask(material: Material, missing: list[int], background: bool) -> str:
    if material.warm is not None:
        return await _ask_warm(material, material.warm, missing, background)
    return await _ask_cold(material, missing, background)


async def _ask_warm(material: Material, call: ModelCall, missing: list[int], background: bool) -> str:
    model = catalog.get(call.model)
    question = canonical([text_block(summary.question(material.rows, missing))])

    def prepare() -> tuple[ModelCall, bytes, str]:
        generation = Generation.objects.get(pk=material.generation.pk)
        messages = wire_messages(
            generation.opening,
            rows_of_call(generation.pk, LAST_ROW, generation.cut),
            model_name=model.name,
            thinking_from=generation.thinking_from,
        )
        header = call.header.text
        # Anchors where the prefix already has its entries; none on the tail, which nobody reads again.
        standing = {message.last_id for message in messages}
        anchors = [Anchor(SYSTEM, model.system_lifetime)]
        if call.last_message_id in standing:
            anchors.append(Anchor(call.last_message_id or 0, model.message_lifetime))
        messages.append(WireMessage(LAST_ROW, "user", question))
        limit = min(model.answer_tokens, SUMMARY_MAX_TOKENS)
        body = body_bytes(header, messages, anchors, limit)
        return _open(material, model, header, body, limit, anchors, call.last_message_id, background), body, header

    return await _run(model, prepare)


async def _ask_cold(material: Material, missing: list[int], background: bool) -> str:
    """The light model writes the summary page by page: each page with the summary so far."""
    model = router.candidates(catalog.LIGHT, material.thread.category)[0]
    text = opening_text(material.generation)
    for page in pages(material.rows, model):
        words = f"{_so_far(text)}{page}\n\n{summary.question(material.rows, missing)}"
        header = header_text(model=model, tools=[], system="You write summaries of conversations.")
        messages = [WireMessage(1, "user", canonical([text_block(words)]))]

        def prepare(header: str = header, messages: list[WireMessage] = messages) -> tuple[ModelCall, bytes, str]:
            limit = min(model.answer_tokens, SUMMARY_MAX_TOKENS)
            body = body_bytes(header, messages, [], limit)
            return _open(material, model, header, body, limit, [], None, background), body, header

        text = await _run(model, prepare)
    return text


async def _run(model: Model, prepare: Callable[[], tuple[ModelCall, bytes, str]]) -> str:
    call, body, header = await in_database(prepare)
    started = clock.monotonic()
    try:
        answer = await provider.complete(model, body, betas_of(header))
    except BaseException as error:
        failure = error if isinstance(error, ModelError) else None
        outcome = failure.kind.value if failure else ModelCall.Outcome.INTERRUPTED
        await asyncio.shield(in_database(close_call, call, outcome=outcome, error=failure))
        raise
    await in_database(_close, call, answer, int((clock.monotonic() - started) * 1000))
    return answer.text


def _open(
    material: Material,
    model: Model,
    header: str,
    body: bytes,
    limit: int,
    anchors: list[Anchor],
    last_message_id: int | None,
    background: bool,
) -> ModelCall:
    with transaction.atomic():
        # A turn never waits for a budget; what runs beside it does.
        reserve = None
        if background:
            tokens = estimate_tokens(body.decode(), model)
            reserve = budgets.reserve(material.thread.owner, model, tokens, limit, ModelCall.Purpose.COMPACTION)
        return open_call(
            purpose=ModelCall.Purpose.COMPACTION,
            owner_id=material.thread.owner_id,
            thread_id=material.thread.pk,
            generation_id=material.generation.pk,
            header=remember_header(header),
            model=model,
            body_sha256=body_sha256(body),
            last_message_id=last_message_id,
            cut=material.generation.cut,
            thinking_from=material.generation.thinking_from,
            anchors=anchors,
            max_tokens=limit,
            reserve=reserve,
        )


def _close(call: ModelCall, answer: Answer, total_ms: int) -> None:
    close_call(
        call,
        outcome=ModelCall.Outcome.COMPLETE,
        usage=answer.usage,
        stop_reason=answer.stop_reason,
        total_ms=total_ms,
    )


def pages(rows: list[Message], model: Model) -> list[str]:
    """The rendered rows, tagged with their ids, in pages of about PAGE_TOKENS tokens."""
    found: list[str] = []
    page: list[str] = []
    room = PAGE_TOKENS
    for row in rows:
        line = f"m:{row.pk} {row.role}: {_shown(row)}"
        tokens = estimate_tokens(line, model)
        if page and tokens > room:
            found.append("\n\n".join(page))
            page, room = [], PAGE_TOKENS
        page.append(line)
        room -= tokens
    return [*found, "\n\n".join(page)] if page else found


def _shown(row: Message) -> str:
    """What a row says, and what it quotes: the summary's model sees neither otherwise."""
    said = head_and_tail(row.text, ROW_MAX_CHARS, " [...] ")
    quote = row.meta.get("quote")
    return f"{said}\n{head_and_tail(quoting.note(quote), ROW_MAX_CHARS, ' [...] ')}" if quote else said


def commit(
    material: Material, made: Summary, reason: Generation.EndReason, token: UUID | None
) -> tuple[Generation, list[Event]] | None:
    """End the generation and open the next, in the caller's transaction. None, and nothing changed, when somebody
    spoke meanwhile (or took the thread, where no lease is held): the summary would not know it."""
    thread = lock_thread(material.thread.pk, token)
    generation = live_generation(thread)
    last = Message.objects.filter(thread=thread).order_by("-pk").values_list("pk", flat=True).first() or 0
    rests = token is not None or thread.state == Thread.State.IDLE
    if generation.pk != material.generation.pk or last != material.last_id or not rests:
        return None
    standing = summary.carried([Standing(**entry) for entry in generation.standing], made)
    generation.summary, generation.ended, generation.end_reason = made.text, clock.now(), reason
    generation.save(update_fields=["summary", "ended", "end_reason"])
    fresh = Generation.objects.create(
        thread=thread,
        owner_id=thread.owner_id,
        ordinal=generation.ordinal + 1,
        standing=[asdict(entry) for entry in standing],
    )
    fresh.opening = opening.render(thread, fresh)
    fresh.save(update_fields=["opening"])
    with translation.override(thread.owner.language):
        sentence = _("The context was renewed: what was said before is summarised.")
    event = append_notice(thread, fresh, sentence, "generation")
    settle(thread, SettledReason.GENERATION_ENDED)
    return fresh, [event]


def idle_due(now: datetime) -> list[int]:
    """Threads at rest whose context is large enough and whose cache runs out within IDLE_BEFORE_EXPIRY."""
    newest = ModelCall.objects.filter(generation_id=OuterRef("pk"), purpose=ModelCall.Purpose.TURN).order_by("-id")
    resting = Generation.objects.filter(
        ended__isnull=True,
        thread__state=Thread.State.IDLE,
        thread__status=Thread.Status.ACTIVE,
        thread__deleted__isnull=True,
        thread__updated__gt=now - max(LIFETIMES.values()) - IDLE_BEFORE_EXPIRY,
    )
    newest_id = Subquery(newest.filter(input_tokens__isnull=False).values("pk")[:1])
    due = []
    for generation in resting.annotate(newest_call=newest_id).filter(newest_call__isnull=False):
        call = ModelCall.objects.get(pk=generation.newest_call)
        model = catalog.load_catalog().models.get(call.model)
        tokens = meter.live_tokens(call)
        if model is None or not expires(call) - IDLE_BEFORE_EXPIRY <= now < expires(call):
            continue
        if tokens > IDLE_SHARE * model.context_budget and worthwhile(generation, tokens, model):
            due.append(generation.thread_id)
    return due


async def compact_idle(thread_id: int) -> bool:
    """Renew the context of a thread at rest, without a lease. False when somebody spoke first or it is not due any
    more: then nothing changed."""
    material = await in_database(_gather_if_idle, thread_id)
    if material is None:
        return False
    made = await summarize(material, background=True)
    if made is None:
        return False
    return await in_database(_commit_idle, material, made)


def _gather_if_idle(thread_id: int) -> Material | None:
    try:
        material = gather(thread_id)
    except ThreadGone:
        return None
    # Another worker is at it: its open call is its claim.
    open_since = clock.now() - timedelta(seconds=SUMMARY_TIMEOUT_SECONDS * ATTEMPTS)
    claimed = ModelCall.objects.filter(
        generation_id=material.generation.pk, purpose=ModelCall.Purpose.COMPACTION, outcome="", started__gt=open_since
    )
    if material.thread.state != Thread.State.IDLE or material.warm is None or claimed.exists():
        return None
    return material


def _commit_idle(material: Material, made: Summary) -> bool:
    with transaction.atomic():
        done = commit(material, made, Generation.EndReason.IDLE, None)
        if done is not None:
            emit_all(material.thread.pk, material.thread.owner_id, done[1])
        return done is not None


def _so_far(text: str) -> str:
    return f"The summary so far:\n\n{text}\n\nThe conversation goes on:\n\n" if text else ""


def _known_ids(material: Material) -> Callable[[set[int]], set[int]]:
    def known(ids: set[int]) -> set[int]:
        found = Message.objects.filter(thread=material.thread, pk__in=ids)
        return set(found.exclude(left_because=Message.LeftBecause.SUPERSEDED).values_list("pk", flat=True))

    return known


def _said_by_user(material: Material) -> Callable[[str], bool]:
    """Whether words stand in a user row of the thread. Folded, so that case and composition do not matter."""
    rows = Message.objects.filter(thread=material.thread, role=Message.Role.USER)
    said = rows.exclude(left_because=Message.LeftBecause.SUPERSEDED)

    def contains(words: str) -> bool:
        needle = fold(words).strip(" .。")
        return bool(needle) and said.extra(where=["strpos(search_text, %s) > 0"], params=[needle]).exists()

    return contains
