"""Renewing the context: a summary is made of the live generation, and a new one opens with it.

When that is due, what the summary is made of, and the commit; `summarizing.py` has the summary written. Until the
commit the old generation is live and whole.
"""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.utils import translation

from agent import frames, meter, notices, opening
from agent.events import Event, emit_all
from agent.prefix import LIFETIMES, expires
from agent.safe_point import append_notice
from agent.summarizing import Material, summarize
from agent.summary import Standing, Summary
from agent.summary_check import carried
from llm import catalog
from llm.catalog import Model
from llm.estimates import estimate_tokens
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.database_threads import in_database
from threads.lifecycle import settle
from threads.models import Generation, Message, Thread
from threads.signals import SettledReason
from threads.transcript import ThreadGone, live_generation, lock_thread

THRESHOLD_SHARE = 0.7  # of the budget, at a turn boundary
IDLE_SHARE = 0.35  # of the budget, on a thread that rests
IDLE_BEFORE_EXPIRY = timedelta(seconds=120)
WORTHWHILE_SHARE = 0.2  # of the budget, outside header and opening: less would be cut again and again for nothing


def over_threshold(generation: Generation, live_tokens: int, model: Model) -> bool:
    """Whether the live context calls for a new generation at a turn boundary. `live_tokens` are what the provider
    counted of the request that it just answered: nothing of it is an estimate."""
    return live_tokens > THRESHOLD_SHARE * model.context_budget and worthwhile(generation, live_tokens, model)


def worthwhile(generation: Generation, live_tokens: int, model: Model) -> bool:
    """Whether a new generation would be notably smaller: what the header and the opening take stays."""
    header = generation.header.text if generation.header is not None else ""
    fixed = estimate_tokens(header + (generation.opening or ""), model)
    return live_tokens - fixed > WORTHWHILE_SHARE * model.context_budget


def gather(thread_id: int, forgetting: bool = False) -> Material:
    """Read what the summary needs. When the opening says something that is to be forgotten, the warm prefix is not
    asked. Raises ThreadGone, NoLiveGeneration."""
    with transaction.atomic():
        thread = lock_thread(thread_id)
        generation = live_generation(thread)
        rows = own_rows(generation)
        last = Message.objects.filter(thread=thread).order_by("-pk").values_list("pk", flat=True).first() or 0
        return Material(thread, generation, rows, last, None if forgetting else warm_call(generation))


def own_rows(generation: Generation) -> list[Message]:
    """What a generation's context holds beyond its opening, in order."""
    rows = Message.objects.filter(
        generation=generation, model_visible=True, wire__isnull=False, left_at_cut__isnull=True
    )
    return list(rows.order_by("pk"))


def anything_said(rows: Iterable[Message]) -> bool:
    """Whether a person or a model spoke in these rows: notes of the framework's alone are nothing to summarise."""
    return any(row.role in (Message.Role.USER, Message.Role.ASSISTANT) for row in rows)


def warm_call(generation: Generation) -> ModelCall | None:
    """The generation's newest turn request, if its prefix is still in the provider's cache."""
    call = meter.last_turn_call(generation.pk)
    if call is None or call.cut != generation.cut or not (call.cache_read_tokens or meter.prompt_tokens(call)):
        return None
    return call if clock.now() < expires(call) else None


def commit(
    material: Material,
    made: Summary,
    reason: Generation.EndReason,
    token: UUID | None,
    ahead: opening.Ahead | None = None,
) -> tuple[Generation, list[Event]] | None:
    """End the generation and open the next, in the caller's transaction. None, and nothing changed, when somebody
    spoke meanwhile (or a turn is open, where no lease is held): the summary would not know it; nor while something is
    to be forgotten that the summary may hold. `ahead` is what was found for the opening."""
    thread = lock_thread(material.thread.pk, token)
    generation = live_generation(thread)
    last = Message.objects.filter(thread=thread).order_by("-pk").values_list("pk", flat=True).first() or 0
    rests = token is not None or (thread.state == Thread.State.IDLE and not frames.open_frames(thread).exists())
    to_forget = frames.open_renewals(thread).filter(source=frames.RENEWAL_TO_FORGET)
    if generation.pk != material.generation.pk or last != material.last_id or not rests:
        return None
    if reason != Generation.EndReason.FORGOTTEN and to_forget.exists():
        return None
    standing = carried([Standing(**entry) for entry in generation.standing], made)
    generation.summary, generation.ended, generation.end_reason = made.text, clock.now(), reason
    generation.save(update_fields=["summary", "ended", "end_reason"])
    fresh = Generation.objects.create(
        thread=thread,
        owner_id=thread.owner_id,
        ordinal=generation.ordinal + 1,
        summary_before=made.text,
        standing=[asdict(entry) for entry in standing],
    )
    fresh.opening = opening.render(thread, fresh, ahead)
    fresh.save(update_fields=["opening"])
    with translation.override(thread.owner.language):
        event = append_notice(thread, fresh, notices.sentence_of(notices.RENEWED), notices.RENEWED)
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
        # Twice: somebody else may have read the cache once more, and so kept it.
        thread__updated__gt=now - 2 * max(LIFETIMES.values()) - IDLE_BEFORE_EXPIRY,
    )
    newest_id = Subquery(newest.filter(input_tokens__isnull=False).values("pk")[:1])
    due = []
    resting = resting.select_related("header").annotate(newest_call=newest_id)
    for generation in resting.filter(newest_call__isnull=False):
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
    try:
        made = await summarize(material, background=True)
        if made is None:
            return False
        ahead = await opening.look_ahead(thread_id, made.text)
        return await in_database(_commit_idle, material, made, ahead)
    except ThreadGone:
        return False


def _gather_if_idle(thread_id: int) -> Material | None:
    try:
        material = gather(thread_id)
    except ThreadGone:
        return None
    if material.thread.state != Thread.State.IDLE or material.warm is None:
        return None
    return material


def _commit_idle(material: Material, made: Summary, ahead: opening.Ahead) -> bool:
    with transaction.atomic():
        done = commit(material, made, Generation.EndReason.IDLE, None, ahead)
        if done is not None:
            emit_all(material.thread.pk, material.thread.owner_id, done[1])
        return done is not None
