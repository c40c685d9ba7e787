"""What memory knows already, for whoever is to write more: the facts of the same conversation and those near to its
words, so that nothing is written twice and a change replaces what it changes."""

from collections.abc import Collection, Mapping, Sequence

from django.db.models import Q

from maxclaw.database_threads import in_database
from memory import fact_lines, fact_search
from memory.fact_search import FactHit, active_facts, hit_of, marked, models_of, order, shown
from memory.models import Fact
from memory.query_vectors import Compared, QueryVectors, pieces
from threads.models import Thread
from threads.visibility import Viewer

OF_THREAD_MAX = 60
NEAREST_MAX = 8
LINES_MAX_CHARS = 16_000
HEADING = (
    "What memory holds already, each with its id. Do not write it again. Where it has changed, replace the old fact by "
    "its id; what is not about the same thing, or does not apply to the same thing, stands beside it."
)


async def known(thread: Thread, words: str) -> list[FactHit]:
    """The newest facts with evidence in a thread, then the facts nearest to some words, through the thread's Viewer.
    The words have the thread's category: a model that may not read it is not asked, and its vectors do not count."""
    viewer = Viewer.of_thread(thread)
    own = await in_database(_of_thread, viewer, thread)
    asked = QueryVectors(words, thread.category, pieces(words))
    models = await in_database(models_of, viewer.owner_id)
    compared = {model: await asked.by(model) for model in models if model}
    able = {model: one for model, one in compared.items() if one is not None}
    return [*own, *await in_database(_near, viewer, able, {hit.fact_id for hit in own})]


def nearest(thread: Thread, words: str) -> list[FactHit]:
    """The facts nearest to some words of a thread's, through its Viewer; none where they cannot be embedded or may not.
    Not for an event loop."""
    viewer = Viewer.of_thread(thread)
    asked = QueryVectors(words, thread.category, pieces(words))
    compared = {model: one for model in models_of(viewer.owner_id) if model and (one := asked.by_now(model))}
    return _near(viewer, compared, ())


def rendered(facts: Sequence[FactHit]) -> str:
    """A heading and a line for each fact, as many as fit; blank without any."""
    found = lines(facts)
    return "\n".join([f"# {HEADING}", *found]) if found else ""


def lines(facts: Sequence[FactHit]) -> list[str]:
    """A line for each fact, as many as fit."""
    return fact_lines.lines_within(facts, LINES_MAX_CHARS)


def _of_thread(viewer: Viewer, thread: Thread) -> list[FactHit]:
    here = Q(evidence__message__thread=thread) | Q(evidence__generation__thread=thread)
    ids = Fact.objects.filter(here, owner_id=thread.owner_id).values("pk")
    newest = shown(active_facts(viewer).filter(pk__in=ids)).order_by("-pk")[:OF_THREAD_MAX]
    return marked([hit_of(fact) for fact in newest])


def _near(viewer: Viewer, compared: Mapping[str, Compared], listed: Collection[int]) -> list[FactHit]:
    """The facts nearest to any of the words, however near: words of a page are many, and a fact is one sentence."""
    facts = active_facts(viewer).exclude(pk__in=listed)
    near = [
        hit
        for model, one in compared.items()
        for hit in fact_search.nearest(facts, model, one.vectors, one.thresholds.recall, NEAREST_MAX)
    ]
    return marked(sorted(near, key=order)[:NEAREST_MAX])
