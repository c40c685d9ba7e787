"""What a search by meaning reads: the same conversations as the literal search of a channel, or all that the viewer may
see; and whose vectors answer there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add, or_
from typing import Any

from django.db import connection
from django.db.models import Case, Count, Q, QuerySet, Value, When
from django.db.models.functions import Left, StrIndex
from django.db.models.lookups import GreaterThan
from pgvector.django import CosineDistance

from accounts.days import local
from llm import embedding
from memory.chunks import embedded_rows
from memory.models import EmbeddedThread, MessageChunk
from threads.history import readable_thread
from threads.models import Message
from threads.search_range import ANCESTORS_MAX, Range, Span, standing
from threads.visibility import Viewer, message_filter

CHUNKS_MAX = 4_000
HELD_MAX = 20_000
WORD_ROWS_MAX = 1_500
# Of longer words the rest is found by its meaning, and by the literal search.
TEXT_MAX_CHARS = 20_000


@dataclass(frozen=True)
class ChunkKey:
    """One chunk of a message that may be found: which characters of which message, in which conversation."""

    thread_id: int
    message_id: int
    offset: int
    length: int


@dataclass(frozen=True)
class StoredChunk:
    """A chunk with its words and where it stands; `created` is in the person's own zone."""

    key: ChunkKey
    generation_id: int
    role: str
    created: datetime
    text: str
    channel: str
    title: str


@dataclass(frozen=True)
class Reach:
    """The conversations that are searched: spans of one and of what it was copied from, None for every one that the
    viewer may see. `model` is the embedding model whose vectors answer there, None where there are none. `category` is
    the label of what is asked there: a query speaks of what it looks for."""

    viewer: Viewer
    spans: tuple[Span, ...] | None
    model: str | None
    category: str

    def rows(self) -> QuerySet[Message]:
        """The messages that may be found."""
        return embedded_rows(Message.objects.filter(self._within("pk")))

    def nearest(self, vector: Any) -> dict[ChunkKey, float]:
        """The chunks with the greatest cosines to a query's vector, at most CHUNKS_MAX. An exact
        scan. Chunks of another model are not compared."""
        chunks = MessageChunk.objects.filter(self._within("message_id"), model=self.model)
        standing = chunks.filter(message__model_visible=True).exclude(
            message__left_because=Message.LeftBecause.SUPERSEDED
        )
        nearest = standing.annotate(distance=CosineDistance("embedding", vector)).order_by("distance")
        values = nearest.values_list("thread_id", "message_id", "offset", "length", "distance")[:CHUNKS_MAX]
        return {ChunkKey(*row[:4]): 1.0 - row[4] for row in values}

    def holding(self, needles: Sequence[str]) -> list[tuple[int, int, str]]:
        """(thread, id, text) of messages that hold one of some folded needles: at most WORD_ROWS_MAX, those with the
        most telling needles. Results of tools are left to the literal search: they are long, and embedded in part."""
        if not needles:
            return []
        rows = self.rows().exclude(role=Message.Role.TOOL)
        bits = [Case(When(_holds(needle), then=1 << bit), default=0) for bit, needle in enumerate(needles)]
        matching = rows.filter(reduce(or_, map(_holds, needles))).annotate(held=reduce(add, bits))
        held = list(matching.order_by("-pk").values_list("pk", "held")[:HELD_MAX])
        if len(held) > WORD_ROWS_MAX:
            counts = [sum(1 for _pk, bits in held if bits >> bit & 1) for bit in range(len(needles))]
            held.sort(key=lambda row: (_telling(row[1], counts), row[0]), reverse=True)
        ids = [pk for pk, _held in held[:WORD_ROWS_MAX]]
        texts = Message.objects.filter(pk__in=ids).annotate(start=Left("text", TEXT_MAX_CHARS))
        return list(texts.order_by("pk").values_list("thread_id", "pk", "start"))

    def originals(self, ids: Collection[int]) -> dict[int, tuple[int, int]]:
        """Of messages that are copies: (thread, id) of the row that is shown for each, as the literal search does: what
        it is a copy of, as long as that may be found too."""
        shown: dict[int, tuple[int, int]] = {}
        asked = set(ids)
        for _step in range(ANCESTORS_MAX):
            rows = Message.objects.filter(self._within("pk"), standing(), copies__in=asked)
            found = {copy: (thread, pk) for copy, thread, pk in rows.values_list("copies__pk", "thread_id", "pk")}
            if not found:
                break
            shown |= found
            asked = {pk for _thread, pk in found.values()}
        return {pk: _first(shown, pk) for pk in ids if pk in shown}

    def _within(self, id_field: str) -> Q:
        owned = Q(owner_id=self.viewer.owner_id)
        if self.spans is None:
            return owned & Q(thread__deleted__isnull=True) & message_filter(self.viewer)
        return owned & reduce(or_, (_span(span, id_field) for span in self.spans))


def reach(viewer: Viewer, channel: str | None) -> Reach:
    """What a viewer searches, by channel or everywhere. Raises HistoryRefused for a channel that is not the viewer's to
    read."""
    spans, category = None, viewer.level.category
    if channel is not None:
        thread = readable_thread(viewer, channel)
        spans, category = tuple(Range(viewer, thread).spans), category or thread.category
    return Reach(viewer, spans, _answering_model(viewer, spans), category)


def _answering_model(viewer: Viewer, spans: Sequence[Span] | None) -> str | None:
    """The configured model, or the one before it as long as more messages have its vectors and queries can still be
    embedded for it."""
    configured = embedding.configured().name
    within = Q(owner_id=viewer.owner_id)
    if spans is not None:
        within &= Q(thread_id__in=[span.thread_id for span in spans])
    models = set(EmbeddedThread.objects.filter(within).values_list("model", flat=True))
    if models <= {configured}:
        return configured if models else None
    chunks = MessageChunk.objects.filter(within).values_list("model")
    counts = dict(chunks.annotate(messages=Count("message", distinct=True)))
    for name, count in sorted(counts.items(), key=lambda item: item[1], reverse=True):
        if count > counts.get(configured, 0) and embedding.able_to_embed(name) is not None:
            return name
    return configured if configured in counts else None


def stored(keys: Sequence[ChunkKey]) -> list[StoredChunk]:
    """The chunks that are still there, in order. Their words are cut out by the database: messages may be long."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT wanted.place - 1, message.generation_id, message.role, message.created,
                   substr(message.text, wanted.start + 1, wanted.length), thread.channel, thread.title, owner.time_zone
            FROM unnest(%s::bigint[], %s::int[], %s::int[]) WITH ORDINALITY AS wanted(id, start, length, place)
            JOIN threads_message AS message ON message.id = wanted.id
            JOIN threads_thread AS thread ON thread.id = message.thread_id
            JOIN accounts_user AS owner ON owner.id = message.owner_id
            ORDER BY wanted.place
            """,
            [[key.message_id for key in keys], [key.offset for key in keys], [key.length for key in keys]],
        )
        return [
            StoredChunk(keys[place], generation, role, local(created, time_zone), *words)
            for place, generation, role, created, *words, time_zone in cursor.fetchall()
        ]


def _first(shown: Mapping[int, tuple[int, int]], pk: int) -> tuple[int, int]:
    thread_id, original = shown[pk]
    while original in shown:
        thread_id, original = shown[original]
    return thread_id, original


def _span(span: Span, id_field: str) -> Q:
    upto = {} if span.upto is None else {f"{id_field}__lte": span.upto}
    return Q(thread_id=span.thread_id, **upto)


def _holds(needle: str) -> GreaterThan:
    return GreaterThan(StrIndex("search_text", Value(needle)), 0)


def _telling(held: int, counts: Sequence[int]) -> float:
    return sum(1 / counts[bit] for bit in range(len(counts)) if held >> bit & 1)
