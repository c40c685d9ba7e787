"""Embeddings from a server that speaks the OpenAI shape: POST {url}/embeddings with model and input."""

import json
import random
import threading
import time
from collections.abc import Sequence
from typing import Any

import httpx2
import numpy as np
from django.conf import settings

from llm.embedding import CHUNK_MAX_CHARS, EmbeddingError, Thresholds, Vectors, unit_length
from llm.errors import ErrorKind, classify, redact
from maxclaw.text import head

BATCH_TEXTS = 64
TIMEOUT_SECONDS = 30.0
LONGEST_WAIT_SECONDS = 30.0
DETAIL_MAX_CHARS = 300


class HttpBackend:
    """One model of one server. `url` with or without the trailing `/v1` or `/v1/embeddings`; `api_key` may be empty.
    `categories` are the labels of the conversations whose words may leave for it."""

    max_chars = CHUNK_MAX_CHARS

    def __init__(
        self, url: str, model: str, api_key: str, thresholds: Thresholds, categories: frozenset[str] = frozenset()
    ) -> None:
        self.name = model
        self.thresholds = thresholds
        self.categories = categories
        self.url = _endpoint(url)
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        self._api_key = api_key
        self._client: httpx2.Client | None = None
        self._making = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Vectors:
        parts = [self._batch(texts[at : at + BATCH_TEXTS]) for at in range(0, len(texts), BATCH_TEXTS)]
        if not parts:
            return np.zeros((0, 0), dtype=np.float32)
        if len({part.shape[1] for part in parts}) > 1:
            raise EmbeddingError(ErrorKind.UNKNOWN, f"The embedding server at {self.url} mixes vectors of two lengths.")
        return unit_length(np.concatenate(parts))

    def _batch(self, texts: Sequence[str]) -> Vectors:
        """One request, tried again while the error is one that passes."""
        for attempt in range(settings.MODEL_RETRIES + 1):
            try:
                return self._ask(texts)
            except _Passing as error:
                wait = error.retry_after
                if attempt == settings.MODEL_RETRIES or (wait or 0) > LONGEST_WAIT_SECONDS:
                    raise error.failure from None
                backoff: float = settings.MODEL_RETRY_BASE_SECONDS * 2**attempt
                time.sleep(max(wait or 0.0, backoff) * random.uniform(1.0, 1.25))  # noqa: S311  (jitter, no secret)
        raise AssertionError("the last attempt returns or raises")

    def _ask(self, texts: Sequence[str]) -> Vectors:
        # The API refuses an empty input; a space means as little.
        body = {"model": self.name, "input": [text if text.strip() else " " for text in texts]}
        try:
            response = self._connected().post(self.url, json=body, headers=self._headers)
        except httpx2.TransportError as error:
            reason = f"The embedding server at {self.url} does not answer ({type(error).__name__}). "
            raise _Passing(
                EmbeddingError(ErrorKind.TRANSIENT, f"{reason}Check MAXCLAW_EMBEDDING_URL."), None
            ) from error
        if response.status_code != 200:
            raise self._refusal(response)
        return self._vectors(response, len(texts))

    def _refusal(self, response: httpx2.Response) -> Exception:
        text = response.text
        verdict = classify(response.status_code, "", text)
        detail = redact(text.replace(self._api_key, "[redacted]") if self._api_key else text)
        said = head(" ".join(detail.split()), DETAIL_MAX_CHARS)
        sentence = f"The embedding server answered with status {response.status_code}: {said}"
        if verdict.kind is ErrorKind.CREDENTIAL:
            sentence = (
                f"The embedding server refuses the key (status {response.status_code}). "
                "Correct MAXCLAW_EMBEDDING_API_KEY."
            )
        failure = EmbeddingError(verdict.kind, sentence)
        if verdict.kind is ErrorKind.TRANSIENT:
            return _Passing(failure, _seconds(response.headers.get("retry-after")))
        return failure

    def _vectors(self, response: httpx2.Response, count: int) -> Vectors:
        """The vectors in the order of the inputs, whatever order they came in."""
        try:
            data: list[dict[str, Any]] = sorted(response.json()["data"], key=lambda item: item["index"])
            vectors = np.asarray([item["embedding"] for item in data], dtype=np.float32)
            if [item["index"] for item in data] != list(range(count)) or vectors.ndim != 2:
                raise ValueError("vectors are missing")
        except (json.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            sentence = f"What {self.url} answers is no list of embeddings. Check MAXCLAW_EMBEDDING_URL and its model."
            raise EmbeddingError(ErrorKind.UNKNOWN, sentence) from error
        if not np.isfinite(vectors).all():
            raise EmbeddingError(ErrorKind.UNKNOWN, f"{self.url} answered with vectors that are no numbers.")
        return vectors

    def _connected(self) -> httpx2.Client:
        with self._making:
            if self._client is None:
                self._client = httpx2.Client(timeout=TIMEOUT_SECONDS)
            return self._client


class _Passing(Exception):
    """An error that may not come again."""

    def __init__(self, failure: EmbeddingError, retry_after: float | None) -> None:
        super().__init__(failure.text)
        self.failure = failure
        self.retry_after = retry_after


def _endpoint(url: str) -> str:
    url = url.rstrip("/")
    if url.endswith("/embeddings"):
        return url
    return f"{url}/embeddings" if url.endswith("/v1") else f"{url}/v1/embeddings"


def _seconds(header: str | None) -> float | None:
    try:
        return max(float(header), 0.0) if header else None
    except ValueError:
        return None
