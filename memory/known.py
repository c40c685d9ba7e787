"""What memory knows already, for whoever is to write more: the facts of the same conversation and those near to its
words, so that nothing is written twice and a change replaces what it changes."""

import asyncio
import logging
from collections.abc import Sequence

from django.db.models import Q
from pgvector.django import CosineDistance

from llm import embedding
from llm.embedding import EmbeddingError, Vectors
from maxclaw.database_threads import in_database
from memory.chunks import spans, words_to_embed
from memory.fact_rows import visible_facts
from memory.models import Fact
from threads.models import Thread
from threads.visibility import Viewer

logger = logging.getLogger("maxclaw.search")

OF_THREAD_MAX = 60
NEAREST_MAX = 8
PIECES_MAX = 8
LINES_MAX_CHARS = 16_000
HEADING = (
    "What memory holds already, each with its id. Do not write it again. Where it has changed, replace the old fact by "
    "its id; what is not about the same thing, or does not apply to the same thing, stands beside it."
)
_TONES = {Fact.Tone.DECISION: "a decision", Fact.Tone.REMARK: "a passing remark"}


async def known(thread: Thread, words: str) -> list[Fact]:
    """The newest facts with evidence in a thread, then the facts nearest to some words, through the thread's Viewer."""
    viewer = Viewer.of_thread(thread)
    own = await in_database(_of_thread, viewer, thread)
    backend = embedding.configured()
    try:
        vectors = await asyncio.to_thread(backend.embed, _pieces(words, backend.max_chars))
    except EmbeddingError as error:
        logger.warning("Known facts are those of the conversation alone: %s", error.text)
        return own
    return [*own, *await in_database(_near, viewer, backend.name, vectors, {fact.pk for fact in own})]


def nearest(thread: Thread, words: str) -> list[Fact]:
    """The facts nearest to some words of a thread's, through its Viewer; none where they cannot be embedded or may not.
    Not for an event loop."""
    backend = embedding.configured()
    if not embedding.may_embed(backend, thread.category):
        return []
    try:
        vectors = backend.embed(_pieces(words, backend.max_chars))
    except EmbeddingError as error:
        logger.warning("The nearest facts are not known: %s", error.text)
        return []
    return _near(Viewer.of_thread(thread), backend.name, vectors, set())


def rendered(facts: Sequence[Fact]) -> str:
    """A heading and a line for each fact, as many as fit; blank without any."""
    found = lines(facts)
    return "\n".join([f"# {HEADING}", *found]) if found else ""


def lines(facts: Sequence[Fact]) -> list[str]:
    """A line for each fact, as many as fit."""
    found: list[str] = []
    room = LINES_MAX_CHARS
    for fact in facts:
        text = line(fact)
        room -= len(text) + 1
        if room < 0:
            break
        found.append(text)
    return found


def line(fact: Fact) -> str:
    """One fact in one line, with what it applies to and its tone."""
    about = [
        f"{fact.created:%Y-%m-%d}",
        _TONES[Fact.Tone(fact.tone)],
        fact.aspect or fact.kind,
        f"applies to: {fact.applies_to}" if fact.applies_to else "applies in general",
        f"project: {fact.project}" if fact.project else "",
    ]
    return f"f:{fact.pk} [{'; '.join(filter(None, about))}] {fact.text}"


def _of_thread(viewer: Viewer, thread: Thread) -> list[Fact]:
    here = Q(evidence__message__thread=thread) | Q(evidence__generation__thread=thread)
    ids = Fact.objects.filter(here, owner_id=thread.owner_id).values("pk")
    facts = visible_facts(viewer).filter(pk__in=ids, status=Fact.Status.ACTIVE)
    return list(facts.defer("embedding").order_by("-pk")[:OF_THREAD_MAX])


def _near(viewer: Viewer, model: str, vectors: Vectors, listed: set[int]) -> list[Fact]:
    """The facts nearest to any of the vectors, an exact scan for each."""
    facts = visible_facts(viewer).filter(status=Fact.Status.ACTIVE, embedding_model=model).exclude(pk__in=listed)
    near: dict[int, tuple[float, Fact]] = {}
    for vector in vectors:
        ranked = facts.annotate(distance=CosineDistance("embedding", vector)).defer("embedding")
        for fact in ranked.order_by("distance", "-pk")[:NEAREST_MAX]:
            distance = vars(fact)["distance"]
            if fact.pk not in near or distance < near[fact.pk][0]:
                near[fact.pk] = (distance, fact)
    ranked_all = sorted(near.values(), key=lambda pair: (pair[0], -pair[1].pk))
    return [fact for _distance, fact in ranked_all[:NEAREST_MAX]]


def _pieces(words: str, max_chars: int) -> list[str]:
    begun = words_to_embed(words[: max_chars * PIECES_MAX])
    return [begun[begin:end] for begin, end in spans(begun, max_chars)][:PIECES_MAX] or [""]
