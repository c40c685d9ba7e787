"""Embedding facts in the background, soon after they were written; the tick catches up with what was missed.

A fact's words never change, so work that is late, done twice or in flight while the fact is forgotten does no harm: a
vector is given to a row that still waits for it, or to none.
"""

import logging
from collections.abc import Sequence

from django.db.models import Q, QuerySet

from llm import embedding
from llm.catalog_entries import ALL
from llm.embedding import EmbeddingBackend, EmbeddingError, Vectors
from llm.error_table import ErrorKind
from maxclaw import clock
from maxclaw.text import head
from memory import secrets
from memory.models import Fact

logger = logging.getLogger("maxclaw.embedding")

BATCH_FACTS = 128
TASK_SECONDS = 20.0
# Kinds of failure that are no matter of the words. Another one may be: then a word that nobody refuses tells.
DOWN = (ErrorKind.TRANSIENT, ErrorKind.CREDENTIAL)
PLAIN_WORD = "tea"


def pending_facts(backend: EmbeddingBackend) -> QuerySet[Fact]:
    """Active facts that this backend made no vector of and may read."""
    # Not an exclusion: the index is read below and above the name.
    other = Q(embedding_model__lt=backend.name) | Q(embedding_model__gt=backend.name)
    facts = Fact.objects.filter(other, status=Fact.Status.ACTIVE)
    return facts if backend.categories == ALL else facts.filter(category__in=["", *backend.categories])


def words_of(fact: Fact) -> str:
    """What is embedded of a fact: its words and what it applies to, without secrets."""
    words = f"{fact.text} ({fact.applies_to})" if fact.applies_to else fact.text
    return secrets.redact(words)


def embed_facts(
    owner_id: int | None = None, backend: EmbeddingBackend | None = None, seconds: float = TASK_SECONDS
) -> int:
    """Embed what an owner's facts lack, or everybody's, for at most about `seconds`. Returns how many got a vector; a
    failing backend is tried again by the next tick, and so are words that it refused."""
    backend = backend or embedding.configured()
    deadline = clock.monotonic() + seconds
    written = last = 0
    while clock.monotonic() < deadline:
        pending = pending_facts(backend).filter(pk__gt=last).order_by("pk")
        if owner_id is not None:
            pending = pending.filter(owner_id=owner_id)
        batch = list(pending[:BATCH_FACTS])
        if not batch:
            break
        try:
            written += _embed(batch, backend, deadline)
        except EmbeddingError as error:
            logger.warning("Facts were not embedded: %s", error.text)
            break
        last = batch[-1].pk
    return written


def _embed(batch: Sequence[Fact], backend: EmbeddingBackend, deadline: float) -> int:
    """Embed some facts, around those whose words the backend refuses: it refuses a request as a whole, so the halves
    are asked for apart. Returns how many got a vector. Raises EmbeddingError where it takes nobody's words now."""
    try:
        return _give(batch, backend.embed([head(words_of(fact), backend.max_chars) for fact in batch]), backend)
    except EmbeddingError as error:
        if error.kind in DOWN:
            raise
        backend.embed([PLAIN_WORD])
        logger.warning("Facts from %s to %s were not embedded: %s", batch[0].pk, batch[-1].pk, error.text)
    if len(batch) == 1 or clock.monotonic() >= deadline:
        return 0
    middle = len(batch) // 2
    return _embed(batch[:middle], backend, deadline) + _embed(batch[middle:], backend, deadline)


def _give(facts: Sequence[Fact], vectors: Vectors, backend: EmbeddingBackend) -> int:
    written = 0
    for fact, vector in zip(facts, vectors, strict=True):
        waiting = Fact.objects.filter(pk=fact.pk, status=Fact.Status.ACTIVE)
        written += waiting.update(embedding=vector, embedding_model=backend.name)
    return written
