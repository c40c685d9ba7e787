"""The vectors of what is asked, by each model whose vectors may answer: a model is asked once, however many parts of a
search compare with it."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from llm import embedding
from llm.embedding import CHUNK_MAX_CHARS, EmbeddingError, Thresholds, Vectors
from memory.chunks import MARGIN_CHARS, spans, words_to_embed

logger = logging.getLogger("maxclaw.search")

PIECES_MAX = 10


@dataclass(frozen=True)
class Compared:
    """What texts become for one model: a row for each text, and the cosines from which two texts are alike."""

    vectors: Vectors
    thresholds: Thresholds


def compared(texts: Sequence[str], model: str, category: str) -> Compared | None:
    """The vectors of some texts, each as much of it as a vector can be made of; None where nobody here can embed for
    this model, or may read words with this label. Raises EmbeddingError. Not for a database unit: a server may be
    asked."""
    backend = embedding.able_to_embed(model)
    if backend is None or not embedding.may_embed(backend, category):
        return None
    # Keys are taken out before the cut, which could leave half of one.
    ready = [words_to_embed(text[: backend.max_chars + MARGIN_CHARS])[: backend.max_chars] for text in texts]
    return Compared(backend.embed(ready), backend.thresholds)


def pieces(text: str, max_chars: int = CHUNK_MAX_CHARS) -> list[str]:
    """A long text as at most PIECES_MAX shorter ones, because a long text has no one meaning. Without keys: half of one
    would be known for none."""
    words = words_to_embed(text[: max_chars * PIECES_MAX + MARGIN_CHARS])[: max_chars * PIECES_MAX]
    return [words[begin:end] for begin, end in spans(words, max_chars)][:PIECES_MAX]


class QueryVectors:
    """The vectors of what is asked: of a text, or of several `texts` of which the nearest counts. `category` is the
    label of what is asked. A model that fails is asked once and compares nothing."""

    def __init__(self, text: str, category: str, texts: Sequence[str] = ()) -> None:
        self.text = text
        self.category = category
        self.texts = texts or [text]
        self._known: dict[str, Compared | None] = {}

    async def by(self, model: str) -> Compared | None:
        """The vectors by a model, None where it cannot be asked."""
        return self._known[model] if model in self._known else await asyncio.to_thread(self.by_now, model)

    def by_now(self, model: str) -> Compared | None:
        """The same, not for an event loop."""
        if model not in self._known:
            self._known[model] = self._ask(model)
        return self._known[model]

    def _ask(self, model: str) -> Compared | None:
        try:
            return compared(self.texts, model, self.category)
        except EmbeddingError as error:
            logger.warning("Nothing is compared by meaning: %s", error.text)
            return None
