"""Embeddings: text to vectors whose cosine says how alike two texts are in meaning.

A backend is the local one, whose weights come inside a package, or a server that speaks the OpenAI shape of
`/v1/embeddings`. Cosines of different models are not comparable, so each brings its own thresholds, and every stored
vector carries the name of the model that made it.
"""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from llm import catalog
from llm.catalog_entries import ALL, may_read
from llm.error_table import ErrorKind

Vectors = NDArray[np.float32]

# What one input may be long: longer ones are cut by whoever embeds, because a longer text has no one meaning.
CHUNK_MAX_CHARS = 1_000
EVERY_CATEGORY = "all"


@dataclass(frozen=True)
class Thresholds:
    """Cosines from which two texts count as alike: strictly (`recall`), and loosely (`briefing`)."""

    recall: float
    briefing: float


class EmbeddingError(Exception):
    """No vectors this time. `kind` is transient (try later), credential or unknown; `text` says what to change."""

    def __init__(self, kind: ErrorKind, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


class EmbeddingBackend(Protocol):
    """One model. `name` stands beside each vector that it makes."""

    @property
    def name(self) -> str: ...

    @property
    def max_chars(self) -> int: ...

    @property
    def categories(self) -> frozenset[str]:
        """Labels of the conversations whose words it may get, see `may_embed`."""
        ...

    @property
    def thresholds(self) -> Thresholds: ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One vector of length 1 for each text, in order: shape (number of texts, dimensions), float32. Raises
        EmbeddingError."""
        ...


_backends: dict[tuple[Any, ...], EmbeddingBackend] = {}
_making = threading.Lock()


def _start_anew() -> None:
    # A forked child shares no connection with its parent, and may have been forked while the lock was held.
    global _making
    _backends.clear()
    _making = threading.Lock()


os.register_at_fork(after_in_child=_start_anew)


def configured() -> EmbeddingBackend:
    """The backend that the settings name, one a process, loaded when it is first asked."""
    return _backend(settings.EMBEDDING_MODEL if settings.EMBEDDING_URL else "")


def able_to_embed(name: str) -> EmbeddingBackend | None:
    """A backend for vectors that the model of this name made: the local one, or one that the configured server may
    still offer. None: nobody here can embed a query for them."""
    from llm.embedding_local import NAME

    if name == configured().name:
        return configured()
    if name == NAME:
        return _backend("")
    return _backend(name) if settings.EMBEDDING_URL else None


def may_embed(backend: EmbeddingBackend, category: str) -> bool:
    """Whether a backend may get words of a conversation with this label (blank: none): the same rule as for models.
    Whoever hands it words asks this first."""
    return may_read(backend.categories, category)


def unread_categories() -> list[str]:
    """Labels of conversations that the configured backend may not read: search by meaning leaves them out."""
    return [category for category in catalog.categories() if not may_embed(configured(), category)]


def check_categories() -> None:
    """Raises EmbeddingError for a label that the catalog does not know."""
    for category in settings.EMBEDDING_READS:
        if category not in (EVERY_CATEGORY, *catalog.categories()):
            raise EmbeddingError(
                ErrorKind.UNKNOWN,
                f'MAXCLAW_EMBEDDING_READS names "{category}", which is no category of the model catalog. '
                f"There are: {', '.join(catalog.categories())}.",
            )


def unit_length(vectors: Vectors) -> Vectors:
    """The same directions, each of length 1; a vector of nothing stays one."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _backend(model: str) -> EmbeddingBackend:
    """The local backend for no name, else the configured server's model."""
    from llm.embedding_http import HttpBackend
    from llm.embedding_local import LocalBackend

    declared = Thresholds(settings.EMBEDDING_RECALL_THRESHOLD, settings.EMBEDDING_BRIEFING_THRESHOLD)
    reads = ALL if EVERY_CATEGORY in settings.EMBEDDING_READS else frozenset(settings.EMBEDDING_READS)
    key = (model, settings.EMBEDDING_URL, settings.EMBEDDING_API_KEY, declared, reads) if model else ()
    with _making:
        if key not in _backends:
            _backends[key] = (
                HttpBackend(settings.EMBEDDING_URL, model, settings.EMBEDDING_API_KEY, declared, reads)
                if model
                else LocalBackend()
            )
        return _backends[key]
