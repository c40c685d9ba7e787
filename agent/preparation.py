"""Preparing a request from the records alone, so that any process can rebuild and prove it later."""

import json
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from agent import opening, prompts, registry
from agent.events import emit
from agent.leases import Holding
from agent.models import TaskFrame
from agent.projection import STREAMING, message_view
from llm import catalog, router
from llm.calls import Prepared
from llm.catalog import Model
from llm.estimates import MOST_TOKENS_PER_CHAR, estimate_tokens
from llm.ledger import open_call
from llm.models import ModelCall, RequestHeader
from llm.wire import (
    Anchor,
    WireMessage,
    betas_of,
    body_bytes,
    body_sha256,
    count_body,
    header_text,
    remember_header,
    turn_anchors,
)
from threads.models import Generation, Message, Thread
from threads.request import rows_of_call, wire_messages
from threads.transcript import append, lock_thread

LAST_ROW = 2**63 - 1


class OpeningTooLarge(Exception):
    """The opening context alone exceeds the budget by estimate: no request could leave room for the conversation.
    `model` and `body` are what its provider is asked to count."""

    def __init__(self, model: Model, body: bytes) -> None:
        super().__init__(model.name)
        self.model = model
        self.body = body


class CategoryChanged(Exception):
    """The thread's category now forbids the model that was chosen: choose again."""


@dataclass
class Step:
    """One request of a turn, with the assistant row that its answer goes into (made at the first attempt), what was
    found for the opening where the generation has none, and the models whose providers counted that it fits."""

    answer: Message | None = None
    generation: Generation | None = None
    ahead: opening.Ahead | None = None
    opening_fits: set[str] = field(default_factory=set)


def choose_models(thread: Thread, generation: Generation) -> list[Model]:
    """The models to ask, in order: the user's pick, else the one whose header the generation keeps, else the
    palette's. Raises router.NoModelForCategory."""
    return router.candidates(catalog.MAIN, thread.category, _own_model(thread, generation))


@dataclass
class Present:
    """The turn's generation with its header, and what is read in the same statement: whether the user asked to stop,
    and where the newest turn request ended that the header's model began to answer."""

    generation: Generation
    stop_asked: bool
    previous_last_id: int | None


def stop_asked(holding: Holding) -> Subquery:
    """Annotation: whether the user asked to stop the running frame."""
    return Subquery(TaskFrame.objects.filter(pk=holding.frame_id).values("stop_asked"))


def present(holding: Holding, thread: Thread) -> Present:
    """What a request is composed from, as it stands now; `thread` was locked with `stop_asked`."""
    if holding.opens is not None:
        return Present(holding.opens, bool(vars(thread)["stop_asked"]), None)
    reached = _reached(OuterRef("pk"), OuterRef("header_id"))
    generation = (
        Generation.objects.select_related("header")
        .annotate(previous_last_id=Subquery(reached.values("last_message_id")[:1]))
        .get(pk=holding.generation_id)
    )
    return Present(generation, bool(vars(thread)["stop_asked"]), vars(generation)["previous_last_id"])


def prepare(holding: Holding, step: Step, model: Model, attempt: int, max_tokens: int | None) -> Prepared:
    """Build a further attempt of a request, for the same model or the next. Raises LeaseLost, ThreadGone,
    CategoryChanged, OpeningTooLarge."""
    with transaction.atomic():
        thread = lock_thread(holding.thread_id, holding.token, stop_asked=stop_asked(holding))
        return compose(thread, present(holding, thread), holding, step, model, attempt, max_tokens)


def compose(
    thread: Thread,
    now: Present,
    holding: Holding,
    step: Step,
    model: Model,
    attempt: int,
    max_tokens: int | None,
) -> Prepared:
    """Build the request for `model`, record it in the ledger, and open the row of its answer. The thread is locked.

    Raises CategoryChanged, and OpeningTooLarge before anything is recorded.
    """
    if not model.reads(thread.category):
        raise CategoryChanged
    generation = step.generation = now.generation
    header = _header(thread, generation, model)
    if generation.opening is None:
        generation.opening = opening.render(thread, generation, step.ahead)
        generation.save(update_fields=["header", "opening"])
    if model.name not in step.opening_fits:
        check_opening(generation.opening, header, model)
    messages = wire_messages(
        generation.opening,
        rows_of_call(generation.pk, LAST_ROW, generation.cut),
        model_name=model.name,
        thinking_from=generation.thinking_from,
    )
    last_id = messages[-1].last_id
    anchors = _anchors(model, now, header, {message.last_id for message in messages}, last_id)
    limit = max_tokens or model.answer_tokens
    body = body_bytes(header.text, messages, anchors, limit)
    if step.answer is None:
        step.answer = append(
            thread, generation, Message.Role.ASSISTANT, meta={"state": STREAMING, "frame": holding.frame_id}
        )
        emit(thread.pk, thread.owner_id, "message", {"message": message_view(step.answer, generation.ordinal)})
    call = open_call(
        purpose=ModelCall.Purpose.TURN,
        owner_id=thread.owner_id,
        thread_id=thread.pk,
        generation_id=generation.pk,
        header=header,
        model=model,
        body_sha256=body_sha256(body),
        last_message_id=last_id,
        cut=generation.cut,
        thinking_from=generation.thinking_from,
        anchors=anchors,
        max_tokens=limit,
        attempt=attempt,
        answer_message_id=step.answer.pk,
    )
    return Prepared(call=call, model=model, body=body, betas=betas_of(header.text), max_tokens=limit)


def check_opening(rendered: str, header: RequestHeader, model: Model) -> None:
    """Raise OpeningTooLarge when what every request of the generation begins with is more than the budget by
    estimate."""
    fixed = rendered + header.text
    if (
        len(fixed) * MOST_TOKENS_PER_CHAR > model.context_budget
        and estimate_tokens(fixed, model) > model.context_budget
    ):
        raise OpeningTooLarge(model, count_body(header.text, [WireMessage(0, "user", rendered)]))


def _header(thread: Thread, generation: Generation, model: Model) -> RequestHeader:
    """The generation's own header where it speaks to this model: an upgrade of the server changes no live prefix, and a
    fallback, which serves one turn, leaves it alone."""
    if generation.header is not None and _wire_id(generation.header) == model.wire_id:
        return generation.header
    header = remember_header(
        header_text(
            model=model,
            tools=[tool.wire() for tool in registry.all_tools()],
            system=prompts.system_text(),
            effort=model.effort or None,
            thinking=model.thinking_parameter(),
        )
    )
    if model == router.first_choice(catalog.MAIN, thread.category, _own_model(thread, generation)):
        generation.header = header
        if generation.opening is not None:  # else it is saved with the opening
            generation.save(update_fields=["header"])
    return header


def _anchors(model: Model, now: Present, header: RequestHeader, boundaries: set[int], last_id: int) -> list[Anchor]:
    """The middle anchor is the last message of the generation's previous turn request that reached this model: a turn
    that adds more than 20 blocks falls out of the provider's look-back without it."""
    previous = now.previous_last_id
    # Usually read with the generation; not for a fallback model, after a rewind, or for a second attempt.
    fits = previous is None or (previous < last_id and previous in boundaries)
    if header.pk != now.generation.header_id or not fits:
        earlier = _reached(now.generation.pk, header.pk).filter(last_message_id__lt=last_id)
        previous = earlier.values_list("last_message_id", flat=True).first()
        previous = previous if previous in boundaries else None
    return turn_anchors(model, previous, last_id)


def _reached(generation_id: int | OuterRef, header_id: str | OuterRef) -> QuerySet[ModelCall]:
    """Turn requests of a generation that a model began to answer, newest first: what they wrote can be read."""
    return ModelCall.objects.filter(
        generation_id=generation_id,
        purpose=ModelCall.Purpose.TURN,
        header_id=header_id,
        first_token_ms__isnull=False,
    ).order_by("-id")


def _wire_id(header: RequestHeader) -> str:
    return json.loads(header.text)["model"]


def _own_model(thread: Thread, generation: Generation) -> str:
    """The user's pick, else the model whose header the generation keeps; blank where neither may read the category."""
    for name in (thread.model, _model_of(generation.header)):
        model = catalog.load_catalog().models.get(name)
        if model is not None and model.reads(thread.category):
            return name
    return ""


def _model_of(header: RequestHeader | None) -> str:
    """Catalog name of the model that a header speaks to; blank when it is no longer offered."""
    if header is None:
        return ""
    wire_id = _wire_id(header)
    return next((model.name for model in catalog.load_catalog().models.values() if model.wire_id == wire_id), "")
