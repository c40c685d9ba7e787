"""Embedding in the background: what was said is embedded soon after, and what was missed is caught up with.

Work is claimed by thread, in a row of ours, for a limited time; a claim is made by one conditional update. What a
batch read is looked at again under the thread's lock before anything is written, so that nothing is kept of what was
deleted meanwhile. A batch and a task are bounded, so that a large import holds up nothing else.
"""

import logging
import uuid
from collections.abc import Sequence
from datetime import timedelta

from django.db import IntegrityError, connection, transaction
from django.db.models import Max, Q

from llm import embedding
from llm.catalog_entries import ALL
from llm.embedding import EmbeddingBackend, EmbeddingError
from maxclaw import clock
from memory.chunks import Chunk, chunks_of, embedded_rows
from memory.models import EmbeddedThread, MessageChunk
from threads.models import Message, Thread
from threads.transcript import ThreadGone, lock_thread

logger = logging.getLogger("maxclaw.embedding")

BATCH_ROWS = 64
BATCH_CHUNKS = 128
TASK_SECONDS = 20.0
CATCH_UP_SECONDS = 40.0
CLAIM = timedelta(minutes=5)


def embed_some(thread_id: int, backend: EmbeddingBackend | None = None, seconds: float = TASK_SECONDS) -> int:
    """Embed what one thread lacks, for at most about `seconds`. Returns how many chunks were written; 0 when another
    worker is at it, or the thread is gone, or the backend may not read it or fails (the next tick tries again)."""
    backend = backend or embedding.configured()
    deadline = clock.monotonic() + seconds
    token = _claim(thread_id, backend.name) if _may_be_embedded(thread_id, backend) else None
    if token is None:
        return 0
    written = 0
    try:
        while clock.monotonic() < deadline:
            done = _embed_batch(thread_id, backend, token)
            if done is None:
                break
            written += done
    except ThreadGone:
        logger.info("Thread %s was erased while it was embedded.", thread_id)
    except EmbeddingError as error:
        logger.warning("Thread %s was not embedded: %s", thread_id, error.text)
    finally:
        _release(thread_id, backend.name, token)
    return written


def catch_up(seconds: float = CATCH_UP_SECONDS) -> int:
    """Embed what any thread lacks, the one last spoken in first, for at most about `seconds`. Returns how many chunks
    were written."""
    backend = embedding.configured()
    deadline = clock.monotonic() + seconds
    written = 0
    for thread_id in pending_threads(backend):
        left = deadline - clock.monotonic()
        if left <= 0:
            break
        written += embed_some(thread_id, backend, min(left, TASK_SECONDS))
    return written


def pending_threads(backend: EmbeddingBackend, limit: int = 1_000, *, claimed: bool = False) -> list[int]:
    """Threads with messages that a model has not looked at and may read, the one last spoken in first. `claimed`: those
    that a worker is at, too."""
    readable = None if backend.categories == ALL else ["", *backend.categories]
    free = "" if claimed else "AND (done.claimed_until IS NULL OR done.claimed_until < %(now)s)"
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            SELECT thread.id FROM threads_thread AS thread
            LEFT JOIN memory_embeddedthread AS done ON done.thread_id = thread.id AND done.model = %(model)s
            WHERE thread.deleted IS NULL {free}
              AND (%(readable)s::text[] IS NULL OR thread.category = ANY(%(readable)s))
              AND EXISTS (SELECT 1 FROM threads_message AS message
                          WHERE message.thread_id = thread.id AND message.id > coalesce(done.through_id, 0))
            ORDER BY thread.updated DESC, thread.id DESC LIMIT %(limit)s
            """,  # noqa: S608  (the condition is one of two constants)
            {"model": backend.name, "now": clock.now(), "limit": limit, "readable": readable},
        )
        return [row[0] for row in cursor.fetchall()]


def _may_be_embedded(thread_id: int, backend: EmbeddingBackend) -> bool:
    categories = Thread.objects.filter(pk=thread_id).values_list("category", flat=True)
    return all(embedding.may_embed(backend, category) for category in categories)


def _claim(thread_id: int, model: str) -> uuid.UUID | None:
    owner_id = Thread.objects.filter(pk=thread_id, deleted__isnull=True).values_list("owner_id", flat=True).first()
    if owner_id is None:
        return None
    try:
        with transaction.atomic():
            row = EmbeddedThread(thread_id=thread_id, owner_id=owner_id, model=model)
            EmbeddedThread.objects.bulk_create([row], ignore_conflicts=True)
    except IntegrityError:  # erased in between
        return None
    token, now = uuid.uuid4(), clock.now()
    free = EmbeddedThread.objects.filter(thread_id=thread_id, model=model).filter(
        Q(claimed_until__isnull=True) | Q(claimed_until__lt=now)
    )
    return token if free.update(claim=token, claimed_until=now + CLAIM) else None


def _release(thread_id: int, model: str, token: uuid.UUID) -> None:
    EmbeddedThread.objects.filter(thread_id=thread_id, model=model, claim=token).update(claim=None, claimed_until=None)


def _embed_batch(thread_id: int, backend: EmbeddingBackend, token: uuid.UUID) -> int | None:
    """Embed the next rows of a claimed thread. Returns how many chunks were written, None when nothing is left (or the
    claim is lost, or the thread was labelled meanwhile). Raises EmbeddingError, ThreadGone."""
    progress = EmbeddedThread.objects.filter(thread_id=thread_id, model=backend.name, claim=token).first()
    if progress is None or not _may_be_embedded(thread_id, backend):
        return None
    last_id = _last_ready(thread_id, progress.through_id)
    rows = Message.objects.filter(thread_id=thread_id, pk__gt=progress.through_id, pk__lte=last_id)
    ids = list(embedded_rows(rows).order_by("pk").values_list("pk", flat=True)[:BATCH_ROWS])
    if not ids:
        if last_id > progress.through_id:
            EmbeddedThread.objects.filter(pk=progress.pk, claim=token).update(through_id=last_id)
        return None
    by_message = chunks_of(embedded_rows(Message.objects.filter(pk__in=ids)), backend.max_chars)
    chunks, through = _within_batch(ids, by_message)
    known = _vectors_of_originals(chunks, backend.name)
    new = [chunk for chunk in chunks if (chunk.message_id, chunk.offset) not in known]
    vectors = backend.embed([chunk.words for chunk in new])
    known |= {(chunk.message_id, chunk.offset): vector for chunk, vector in zip(new, vectors, strict=True)}
    return _write(thread_id, progress, token, chunks, known, through, backend.name)


def _write(
    thread_id: int,
    progress: EmbeddedThread,
    token: uuid.UUID,
    chunks: Sequence[Chunk],
    vectors: dict[tuple[int, int], object],
    through: int,
    model: str,
) -> int | None:
    with transaction.atomic():
        thread = lock_thread(thread_id)
        claimed = EmbeddedThread.objects.filter(pk=progress.pk, claim=token).update(
            through_id=through, claimed_until=clock.now() + CLAIM, updated=clock.now()
        )
        if not claimed:
            return None
        read = Message.objects.filter(thread=thread, pk__in={chunk.message_id for chunk in chunks})
        standing = set(embedded_rows(read).values_list("pk", flat=True))
        made = [
            MessageChunk(
                message_id=chunk.message_id,
                thread_id=thread.pk,
                owner_id=thread.owner_id,
                offset=chunk.offset,
                length=len(chunk.text),
                model=model,
                embedding=vectors[chunk.message_id, chunk.offset],
            )
            for chunk in chunks
            if chunk.message_id in standing
        ]
        MessageChunk.objects.bulk_create(made, ignore_conflicts=True, batch_size=200)
        return len(made)


def _last_ready(thread_id: int, through_id: int) -> int:
    """The last message that has all its words: an answer that is still coming has none."""
    messages = Message.objects.filter(thread_id=thread_id, pk__gt=through_id)
    if Thread.objects.filter(pk=thread_id, state=Thread.State.RUNNING).exists():
        coming = messages.filter(role=Message.Role.ASSISTANT, wire__isnull=True, text="").order_by("pk")
        first = coming.values_list("pk", flat=True).first()
        if first is not None:
            return first - 1
    return messages.aggregate(last=Max("pk"))["last"] or through_id


def _within_batch(ids: Sequence[int], by_message: dict[int, list[Chunk]]) -> tuple[list[Chunk], int]:
    """The chunks of the first messages, as many as a batch takes and of one message at least, and the last of these."""
    chunks: list[Chunk] = []
    through = ids[0]
    for pk in ids:
        more = by_message.get(pk, [])
        if chunks and len(chunks) + len(more) > BATCH_CHUNKS:
            break
        chunks += more
        through = pk
    return chunks, through


def _vectors_of_originals(chunks: Sequence[Chunk], model: str) -> dict[tuple[int, int], object]:
    """Vectors that need not be made again, by (message id, offset): a copy has the words of its original."""
    ids = {chunk.message_id for chunk in chunks}
    copies: dict[int, list[int]] = {}
    for pk, original in Message.objects.filter(pk__in=ids, copied_from__isnull=False).values_list(
        "pk", "copied_from_id"
    ):
        copies.setdefault(original or 0, []).append(pk)
    stored = MessageChunk.objects.filter(message_id__in=copies, model=model)
    return {
        (pk, offset): vector
        for original, offset, vector in stored.values_list("message_id", "offset", "embedding")
        for pk in copies[original]
    }
