"""Finding old words by what they mean: excerpts of messages ranked by words and cosine together.

An excerpt counts as found when its cosine reaches the model's recall threshold or when it has a word of the query;
what stands beside a found one may be shown with it. Ranked higher is what has more of both, see `memory.ranking`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from llm.embedding import CHUNK_MAX_CHARS
from memory import ranking
from memory.chunks import spans
from memory.meaning_range import ChunkKey, Reach, StoredChunk, stored
from memory.query_vectors import Compared
from threads import lexical
from threads.transcript import fold

SHOWN_MAX = 400


@dataclass(frozen=True)
class MeaningHit:
    """An excerpt that was found: words of one message, with where they stand. `created` is in the person's own zone, so
    that its day is theirs. `cosine` None: it has no vector."""

    message_id: int
    generation_id: int
    thread_id: int
    channel: str
    title: str
    role: str
    created: datetime
    offset: int
    text: str
    cosine: float | None


@dataclass(frozen=True)
class MeaningResult:
    """`hits` best first, at most SHOWN_MAX; `total` counts the excerpts found. `nothing_stored`: there is nothing that
    could have been found; else, without hits, nothing is near enough. `by_words_alone`: no vector could be compared."""

    hits: list[MeaningHit]
    total: int
    nothing_stored: bool
    by_words_alone: bool


def meaning_search(reach: Reach, query: str, compared: Compared | None) -> MeaningResult:
    """The excerpts near a query. `compared` is the query by the reach's model, None where nothing can be compared.

    A question and the words that answer it are less alike than two facts that agree, so what makes an excerpt near by
    itself is the looser of the model's thresholds: few answers reach the stricter one.
    """
    cosines = reach.nearest(compared.vectors[0]) if compared is not None else {}
    threshold = compared.thresholds.briefing if compared is not None else 1.0
    texts = _texts_with_words(reach, query)
    shown_as = _as_shown(reach, {*cosines, *texts})
    cosines = {shown_as[key]: cosine for key, cosine in cosines.items()}
    texts = {shown_as[key]: text for key, text in texts.items()}
    # In the order in which they were said.
    keys = sorted({*cosines, *texts}, key=lambda key: (key.thread_id, key.message_id, key.offset))
    if not keys:
        nothing_stored = not reach.rows().exists()
        return MeaningResult([], 0, nothing_stored=nothing_stored, by_words_alone=compared is None)
    scores = lexical.bm25(query, {key: texts[key] for key in keys if key in texts}, population=len(keys))
    words = np.array([scores.get(key, 0.0) for key in keys])
    cosine = np.array([cosines.get(key, np.nan) for key in keys])
    groups = [key.thread_id for key in keys]
    found = (words > 0) | (np.nan_to_num(cosine, nan=-1.0) >= threshold)
    shown = ranking.near(found, groups)
    order = np.argsort(-ranking.fused(words, cosine, groups), kind="stable")
    best = [int(place) for place in order if shown[place]][:SHOWN_MAX]
    hits = [_hit(chunk, cosines.get(chunk.key)) for chunk in stored([keys[place] for place in best])]
    return MeaningResult(hits, int(found.sum()), nothing_stored=False, by_words_alone=compared is None)


def needles_of(query: str) -> list[str]:
    """Pieces of which a text that shares a word with the query, in any form, holds one: words as far as all their
    forms begin, folded."""
    return list(dict.fromkeys(_beginning(word) for word in lexical.query_words(query)))[:24]


def _beginning(word: str) -> str:
    stem = lexical.stem(word)
    common = next((place for place, (a, b) in enumerate(zip(word, stem, strict=False)) if a != b), len(stem))
    return fold(word[: min(common, len(stem))]) or word


def _texts_with_words(reach: Reach, query: str) -> dict[ChunkKey, str]:
    """The chunks of messages that share a word with the query, embedded already or not."""
    return {
        ChunkKey(thread_id, pk, begin, stop - begin): text[begin:stop]
        for thread_id, pk, text in reach.holding(needles_of(query))
        for begin, stop in spans(text, CHUNK_MAX_CHARS)
    }


def _as_shown(reach: Reach, keys: Collection[ChunkKey]) -> dict[ChunkKey, ChunkKey]:
    """Which chunk is shown for each: of a copy that of its original, whose words are the same."""
    originals = reach.originals({key.message_id for key in keys})
    return {
        key: ChunkKey(*originals[key.message_id], key.offset, key.length) if key.message_id in originals else key
        for key in keys
    }


def _hit(chunk: StoredChunk, cosine: float | None) -> MeaningHit:
    return MeaningHit(
        message_id=chunk.key.message_id,
        generation_id=chunk.generation_id,
        thread_id=chunk.key.thread_id,
        channel=chunk.channel,
        title=chunk.title,
        role=chunk.role,
        created=chunk.created,
        offset=chunk.key.offset,
        text=chunk.text,
        cosine=cosine,
    )
