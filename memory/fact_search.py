"""Facts that answer a query: an exact scan of the vectors that the viewer may see, in SQL, before anything is ranked.

A fact is found when its cosine reaches the threshold; below it, when it has every word of the query. Its standing is
how far its cosine is above the threshold, as a share of what is possible, so that facts whose vectors different models
made can stand in one order while a new model's are being filled in: cosines themselves are compared with those of one
model alone. A decision has a head start: of two facts that are about as near, the decision outranks the remark.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Case, F, OuterRef, QuerySet, Value, When
from django.db.models.functions import Least
from pgvector.django import CosineDistance

from accounts.days import local
from llm.embedding import Vectors
from maxclaw.database_threads import in_database
from memory import fact_rows
from memory.models import Fact
from memory.query_vectors import Compared, QueryVectors
from memory.standing import fresh_facts, in_sight, stale_facts, with_said
from threads import lexical
from threads.visibility import Viewer

FOUND_MAX = 8
# A share of what is possible above the threshold.
DECISION_HEAD_START = 0.1
# Of the nearest facts so many are read, so that those below the threshold can be looked through for the query's words.
NEAREST_READ = 200
# Of facts that cannot be compared so many are looked through for words, the newest.
UNCOMPARED_READ = 1_000
# The newest facts are those without a vector, and among them is what was just corrected: they are never crowded out.
UNCOMPARED_PLACES = 2


@dataclass(frozen=True)
class FactHit:
    """A fact as it is shown. `said` is when the words that prove it were (`standing.with_said`), in the person's own
    zone, so that its day is theirs. `standing` is 0 at the
    threshold and at most 1 (a decision's head start not counted); None where no vector could be compared. `stale`: the
    words that prove it were rewritten or taken back."""

    fact_id: int
    text: str
    kind: str
    aspect: str
    applies_to: str
    tone: str
    project: str
    said: datetime
    stale: bool
    standing: float | None

    @property
    def words(self) -> str:
        """What is looked through for words."""
        return "\n".join(filter(None, [self.text, self.applies_to, self.project]))


@dataclass(frozen=True)
class FactsFound:
    """`hits` best first. Without any, `nothing_stored` tells an empty memory from one that has nothing near enough."""

    hits: list[FactHit]
    nothing_stored: bool = False


async def find(viewer: Viewer, asked: QueryVectors) -> FactsFound:
    """The facts that a viewer may see and that answer a query, at most FOUND_MAX, best first."""
    models = await in_database(models_of, viewer.owner_id)
    compared = {model: await asked.by(model) for model in models if model}
    able = {model: vectors for model, vectors in compared.items() if vectors is not None}
    return await in_database(found, viewer, asked.text, able, everything=able.keys() == set(models))


def models_of(owner_id: int) -> list[str]:
    """The embedding models of a person's active facts, blank for those that have no vector."""
    return [row["embedding_model"] for row in each_model_of(owner_id)]


def each_model_of(owner_id: int | OuterRef) -> QuerySet[Fact, Any]:
    """The same as rows of `embedding_model`, for a statement that asks for them beside others."""
    facts = Fact.objects.filter(owner_id=owner_id, status=Fact.Status.ACTIVE)
    return facts.order_by().values("embedding_model").distinct()


def active_facts(viewer: Viewer) -> QuerySet[Fact]:
    """The facts that may be found or brief a viewer. What only deleted conversations prove is as gone as these."""
    return in_sight(fact_rows.visible_facts(viewer).filter(status=Fact.Status.ACTIVE))


def found(viewer: Viewer, query: str, compared: Mapping[str, Compared], *, everything: bool) -> FactsFound:
    """The facts that answer a query; `compared` is it by model, `everything` whether these made all vectors."""
    facts = active_facts(viewer)
    near = [
        hit
        for model, one in compared.items()
        for hit in nearest(facts, model, one.vectors, one.thresholds.recall, NEAREST_READ)
    ]
    above = sorted((hit for hit in near if (hit.standing or 0.0) >= 0), key=order)
    below = _with_every_word(query, [hit for hit in near if (hit.standing or 0.0) < 0])
    others = [] if everything else _by_words(query, facts.exclude(embedding_model__in=compared))
    kept = others[:UNCOMPARED_PLACES]
    hits = [*above, *below][: FOUND_MAX - len(kept)]
    hits = marked([*hits, *others[: FOUND_MAX - len(hits)]])
    return FactsFound(hits, nothing_stored=not hits and not facts.exists())


def nearest(
    facts: QuerySet[Fact], model: str, vectors: Vectors, least: float, count: int, *, fresh: bool = False
) -> list[FactHit]:
    """The facts with the greatest standing above the cosine `least` to the nearest of some vectors, best first: those
    below it too, if there are not so many. An exact scan. With `fresh`, of these only those that are not stale."""
    distances = [CosineDistance("embedding", vector) for vector in vectors]
    distance = distances[0] if len(distances) == 1 else Least(*distances)
    head_start = Case(When(tone=Fact.Tone.DECISION, then=Value(DECISION_HEAD_START * (1 - least))), default=Value(0.0))
    rank = (F("distance") - head_start, "-pk")
    asked = facts.filter(embedding_model=model)
    if fresh:
        # A query around a query: what proves a fact is looked up for so many and not for all, nor is all evidence read.
        few = asked.annotate(distance=distance).order_by(*rank).values("pk")[:count]
        asked = fresh_facts(Fact.objects.filter(pk__in=few))
    ranked = shown(asked).annotate(distance=distance).order_by(*rank)
    return [hit_of(fact, (1 - least - vars(fact)["distance"]) / (1 - least)) for fact in ranked[:count]]


def marked(hits: Sequence[FactHit]) -> list[FactHit]:
    """The same, with those marked that are stale."""
    if not hits:
        return []
    old = set(stale_facts(Fact.objects.filter(pk__in=[hit.fact_id for hit in hits])).values_list("pk", flat=True))
    return [replace(hit, stale=hit.fact_id in old) for hit in hits]


def order(hit: FactHit) -> tuple[float, int]:
    """Sorts the best first: what stands higher, a decision with its head start, the newer of equals."""
    head_start = DECISION_HEAD_START if hit.tone == Fact.Tone.DECISION else 0.0
    return -((hit.standing or 0.0) + head_start), -hit.fact_id


def _with_every_word(query: str, hits: Sequence[FactHit]) -> list[FactHit]:
    wanted = set(lexical.query_tokens(query))
    return sorted((hit for hit in hits if wanted and wanted <= set(lexical.tokens(hit.words))), key=order)


def _by_words(query: str, facts: QuerySet[Fact]) -> list[FactHit]:
    """Facts that share a word with the query, best first."""
    newest = shown(facts).order_by("-pk")[:UNCOMPARED_READ]
    hits = {fact.pk: hit_of(fact) for fact in newest}
    scores = lexical.bm25(query, {pk: hit.words for pk, hit in hits.items()})
    return [hits[pk] for pk in sorted(scores, key=lambda pk: (-scores[pk], -pk))]


def shown(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """The facts as `hit_of` takes them: without their vectors, with when they were said and the time zone of whoever
    they are about."""
    return with_said(facts).annotate(time_zone=F("owner__time_zone")).defer("embedding")


def hit_of(fact: Fact, standing: float | None = None) -> FactHit:
    """A fact (one of `shown`) as it is shown, not marked as stale."""
    return FactHit(
        fact_id=fact.pk,
        text=fact.text,
        kind=fact.kind,
        aspect=fact.aspect,
        applies_to=fact.applies_to,
        tone=fact.tone,
        project=fact.project,
        said=local(vars(fact)["said"], vars(fact)["time_zone"]),
        stale=False,
        standing=standing,
    )
