"""What a run is made of, read from the records: which generation, which page of it, and whether it can be hot."""

import json
import logging
from dataclasses import dataclass, field, replace

from agent import prefix
from agent.policy import SHADOW_TOOL
from llm import catalog, router
from llm.catalog import Model
from llm.models import ModelCall, RequestHeader
from maxclaw import clock
from memory import backlog
from memory.backlog import BacklogRow, Page
from shadow import choosing, cursors, room, triggers
from shadow.choosing import PrefixFacts
from shadow.models import ShadowRun
from threads.models import Generation, Message, Thread
from threads.verification import difference

logger = logging.getLogger("maxclaw.shadow")

ROWS_READ = 400


@dataclass(frozen=True)
class Material:
    """One page of one generation, for one model. `call` and `answer` are the prefix of a hot run, None of a cold one.
    `known_tokens`: what is left of the model's window for what memory knows, by the general estimate.
    `seen` is the conversation's newest message: what came later was said meanwhile. `facts` holds the fingerprints of
    the owner's facts by id: one that is gone later was forgotten meanwhile."""

    thread: Thread
    generation: Generation
    page: Page
    model: Model
    why_cold: ShadowRun.PathReason | None
    call: ModelCall | None
    answer: Message | None
    seen: int
    known_tokens: int
    facts: dict[int, str] = field(default_factory=dict)


def gather(thread_id: int) -> Material | None:
    """The next page of a conversation, of its oldest generation that has one and is not paused. None: there is nothing
    to read, or the conversation is at work. Raises router.NoModelForCategory."""
    thread = cursors.readable_threads().select_related("owner").filter(pk=thread_id).first()
    if thread is None or thread.state == Thread.State.RUNNING:
        return None
    cursors.ensure(thread.pk)
    generation = triggers.next_generations([thread.pk], clock.now()).get(thread.pk)
    if generation is None:
        return None
    seen = Message.objects.filter(thread=thread).order_by("-pk").values_list("pk", flat=True).first() or 0
    rows = _unread_rows(thread, generation)
    if not rows:
        return None
    call = prefix.newest_complete(generation)
    answer = None if call is None else _answer(call, generation)
    model = None if call is None else catalog.load_catalog().models.get(call.model)
    if call is not None and answer is not None and model is not None:
        left = room.behind(call, answer, generation, model)
        page = room.first_page(rows, left)
        cold = _why_cold(thread, generation, call, answer, page_fits=room.fits(page, left))
        if cold is None:
            return Material(thread, generation, page, model, None, call, answer, seen, left - page.tokens)
    else:
        cold = _why_cold(thread, generation, call, answer, page_fits=False)
    model = router.candidates(catalog.LIGHT, thread.category)[0]
    left = room.alone(generation, model)
    page = room.first_page(rows, left)
    return Material(thread, generation, page, model, cold, None, None, seen, left - page.tokens)


def _unread_rows(thread: Thread, generation: Generation) -> list[BacklogRow]:
    """The first unread rows of a generation, more than a page holds."""
    ids = list(cursors.unread_of(generation).order_by("pk").values_list("pk", flat=True)[:ROWS_READ])
    return backlog.rows_of(Message.objects.filter(pk__in=ids), thread.owner.zone)


def _why_cold(
    thread: Thread, generation: Generation, call: ModelCall | None, answer: Message | None, *, page_fits: bool
) -> ShadowRun.PathReason | None:
    facts = None if call is None else facts_of(thread, generation, call, answer, page_fits=page_fits)
    if facts is None and _was_asked(generation):
        return choosing.Reason.INCOMPLETE_ANSWER
    reason = choosing.why_cold(facts, clock.now())
    if reason is not None or facts is None or call is None:
        return reason
    # Last, because it rebuilds the whole request.
    sentence = difference(call, generation)
    if sentence:
        logger.error("The prefix of generation %s (call %s) cannot be proved: %s.", generation.pk, call.pk, sentence)
    return choosing.why_cold(replace(facts, digest_holds=not sentence), clock.now())


def facts_of(
    thread: Thread, generation: Generation, call: ModelCall, answer: Message | None, *, page_fits: bool
) -> PrefixFacts:
    """What is known of a prefix, its digest not yet looked at."""
    model = catalog.load_catalog().models.get(call.model)
    read, written = call.cache_read_tokens, (call.cache_write_5m_tokens, call.cache_write_1h_tokens)
    told = [tokens for tokens in (read, *written) if tokens is not None]
    return PrefixFacts(
        answer_complete=answer is not None,
        at_present_cut=call.cut == generation.cut,
        expires=prefix.expires(call),
        cached_tokens=sum(told) if told else None,
        model_unchanged=model is not None and thread.model in ("", call.model) and speaks_to(call.header, model),
        model_may_read=model is not None and model.reads(thread.category),
        has_tool=SHADOW_TOOL in [tool["name"] for tool in json.loads(call.header.text).get("tools", [])],
        page_fits=page_fits,
        digest_holds=True,
    )


def speaks_to(header: RequestHeader, model: Model) -> bool:
    """Whether a header asks for this model with the effort and thinking that the catalog says now."""
    said = json.loads(header.text)
    return (
        said["model"] == model.wire_id
        and said.get("output_config", {}).get("effort") == (model.effort or None)
        and said.get("thinking") == model.thinking_parameter()
    )


def _answer(call: ModelCall, generation: Generation) -> Message | None:
    """The row of a call's answer, if it stands in the generation and holds something."""
    answer = Message.objects.filter(pk=call.answer_message_id or 0, generation=generation, role=Message.Role.ASSISTANT)
    return answer.filter(wire__isnull=False, left_at_cut__isnull=True).exclude(wire="[]").first()


def _was_asked(generation: Generation) -> bool:
    return ModelCall.objects.filter(generation_id=generation.pk, purpose=ModelCall.Purpose.TURN).exists()
