"""Changing the embedding model: all is embedded anew while the old vectors answer; then the old ones go.

What is done stands in rows, so it can be stopped and taken up again, and workers may help: the minute tick embeds what
the configured model lacks, whether anybody waits for it or not.
"""

from collections.abc import Callable
from dataclasses import dataclass

from django.db import transaction

from llm import embedding
from maxclaw import clock
from memory import embedding_work, fact_embedding
from memory.models import EmbeddedThread, MessageChunk

DROPPED_AT_ONCE = 5_000
PENDING_MAX = 1_000_000
TOLD_EVERY_SECONDS = 5.0


@dataclass(frozen=True)
class Progress:
    """How far it is: threads that the configured model has yet to look at, its chunks, and those of other models; facts
    that it has yet to embed."""

    model: str
    pending: int
    chunks: int
    old_chunks: int
    pending_facts: int

    @property
    def is_done(self) -> bool:
        return not self.pending and not self.old_chunks and not self.pending_facts


def progress() -> Progress:
    """How far the configured model has come."""
    backend = embedding.configured()
    name = backend.name
    return Progress(
        model=name,
        pending=len(embedding_work.pending_threads(backend, PENDING_MAX, claimed=True)),
        chunks=MessageChunk.objects.filter(model=name).count(),
        old_chunks=MessageChunk.objects.exclude(model=name).count(),
        pending_facts=fact_embedding.pending_facts(backend).count(),
    )


def reembed(tell: Callable[[Progress], None]) -> Progress:
    """Embed everything by the configured model, tell how far it is now and then, and drop the vectors of other models
    when nothing is missing. Raises EmbeddingError where the backend does not answer at all."""
    backend = embedding.configured()
    backend.embed(["Is anybody there?"])
    # A fact has one vector: the old one answers until the new one takes its place.
    while fact_embedding.embed_facts(backend=backend):
        tell(progress())
    while pending := embedding_work.pending_threads(backend):
        before = progress()
        tell(before)
        told = clock.monotonic()
        for thread_id in pending:
            embedding_work.embed_some(thread_id, backend)
            if clock.monotonic() - told > TOLD_EVERY_SECONDS:
                tell(progress())
                told = clock.monotonic()
        if progress() == before:
            # The backend gave up on what is left; what is done stays, and the tick goes on trying.
            return before
    if not embedding_work.pending_threads(backend, 1, claimed=True):
        drop_others(backend.name)
    return progress()


def drop_others(name: str) -> int:
    """Delete the vectors of every other model than this, some at a time. Returns how many."""
    dropped = 0
    while True:
        with transaction.atomic():
            old = MessageChunk.objects.exclude(model=name).values_list("pk", flat=True)[:DROPPED_AT_ONCE]
            count, _by_table = MessageChunk.objects.filter(pk__in=list(old)).delete()
        dropped += count
        if not count:
            EmbeddedThread.objects.exclude(model=name).delete()
            return dropped
