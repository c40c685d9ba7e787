"""Requests to a server that speaks the Messages API, through the official SDK, as the raw bytes of
`llm.wire`.

The SDK is asked for the events as they are: its models would reorder blocks and drop what they do not know.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2
from django.conf import settings

from llm.assembly import Assembly
from llm.catalog import ANTHROPIC_URL, Model
from llm.errors import DETAIL_MAX_CHARS, ErrorKind, ModelError, classify
from llm.events import (
    Answer,
    Started,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolUseStarted,
)
from llm.sdk import anthropic

__all__ = [
    "Answer",
    "Started",
    "StreamEvent",
    "TextDelta",
    "ThinkingDelta",
    "ToolInputDelta",
    "ToolUseStarted",
    "complete",
    "count_tokens",
    "stream",
]

CONNECT_TIMEOUT_SECONDS = 10
COUNT_TIMEOUT_SECONDS = 10
END_OF_STREAM_SECONDS = 0.5
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})

_Keeper = AsyncGenerator["anthropic.AsyncAnthropic", None]
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], tuple[anthropic.AsyncAnthropic, _Keeper]]]
_clients = WeakKeyDictionary()


async def stream(model: Model, body: bytes, betas: Sequence[str] = ()) -> AsyncGenerator[StreamEvent, None]:
    """Send a request and yield its events as they come; the last one is the Answer.

    `body` comes from `wire.body_bytes` with stream. Raises ModelError for everything that can go wrong on the
    way, a stall of settings.MODEL_STALL_SECONDS and a stream without its end included. Nothing is retried
    here. Close the generator (`contextlib.aclosing`) or cancel the task to end the request at once.
    """
    request_id = ""
    try:
        client = await _client(model)
        events: anthropic.AsyncStream[object] = await client.post(
            "/v1/messages",
            content=body,
            cast_to=object,
            options=_options(betas, settings.MODEL_STALL_SECONDS),
            stream=True,
            stream_cls=anthropic.AsyncStream[object],
        )
        async with events:
            request_id = events.response.headers.get("request-id", "")
            assembly = Assembly(request_id)
            async for event in events:
                if not isinstance(event, dict):
                    raise _garbled(request_id, f"an event is no object: {event!r}")
                for shown in assembly.take(event):
                    yield shown
                if assembly.complete:
                    await _read_to_end(events)
                    break
        yield assembly.answer()
    except (anthropic.AnthropicError, httpx2.HTTPError, httpx2.StreamError) as error:
        raise _as_model_error(error, request_id, model) from error
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _garbled(request_id, repr(error)) from error


async def _read_to_end(events: anthropic.AsyncStream[object]) -> None:
    """A stream read to its end leaves its connection to the next request. What goes wrong after the end of
    the answer is of no interest, and a server that does not hang up is not waited for."""
    with contextlib.suppress(TimeoutError, anthropic.AnthropicError, httpx2.HTTPError, ValueError):
        async with asyncio.timeout(END_OF_STREAM_SECONDS):
            async for _event in events:
                pass


async def complete(model: Model, body: bytes, betas: Sequence[str] = ()) -> Answer:
    """Send a request and wait for its whole answer. `body` with stream, as for `stream`. Raises ModelError."""
    events = stream(model, body, betas)
    try:
        async for event in events:
            if isinstance(event, Answer):
                return event
    finally:
        await events.aclose()
    raise _garbled("", "the stream had no answer")


async def count_tokens(model: Model, body: bytes, betas: Sequence[str] = ()) -> int | None:
    """How many tokens the prompt of `wire.count_body` has, by the provider's own count.

    None where the provider has no such endpoint or it does not answer: the caller falls back to an estimate.
    """
    if not model.counts_tokens:
        return None
    try:
        client = await _client(model)
        reply = await client.post(
            "/v1/messages/count_tokens",
            content=body,
            cast_to=object,
            options=_options(betas, COUNT_TIMEOUT_SECONDS),
        )
    except (anthropic.AnthropicError, httpx2.HTTPError, ModelError, ValueError):
        return None
    count = reply.get("input_tokens") if isinstance(reply, dict) else None
    return count if isinstance(count, int) else None


def _options(betas: Sequence[str], read_seconds: float) -> Any:
    headers = {"Content-Type": "application/json"}
    if betas:
        headers["anthropic-beta"] = ",".join(betas)
    timeout = httpx2.Timeout(read_seconds, connect=CONNECT_TIMEOUT_SECONDS, pool=None)
    return {"headers": headers, "timeout": timeout}


async def _client(model: Model) -> anthropic.AsyncAnthropic:
    """The client of this event loop for the model's server and key, made when first needed."""
    if not model.base_url or (not model.api_key and model.base_url == ANTHROPIC_URL):
        raise ModelError(
            ErrorKind.CREDENTIAL,
            f"No address or no key is configured for {model.name}.",
            rule="not_configured",
        )
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    server = (model.base_url, model.api_key)
    if server not in clients:
        # A proxy of the environment is not for servers on this machine.
        outward = urlsplit(model.base_url).hostname not in LOOPBACK_HOSTS
        client = anthropic.AsyncAnthropic(
            api_key=model.api_key or "none",
            base_url=model.base_url,
            max_retries=0,
            http_client=anthropic.DefaultAsyncHttpxClient(trust_env=outward, base_url=model.base_url),
        )
        keeper = _keep(client)
        await anext(keeper)
        clients[server] = (client, keeper)
    return clients[server][0]


async def _keep(client: anthropic.AsyncAnthropic) -> _Keeper:
    """Holds a client until its event loop ends: a loop closes its open generators, and this one its connections."""
    try:
        yield client
    finally:
        await client.close()


def _as_model_error(error: Exception, request_id: str, model: Model) -> ModelError:
    if isinstance(error, anthropic.APIStatusError):
        return _from_status(error, model)
    if isinstance(error, (anthropic.APITimeoutError, httpx2.ReadTimeout)):
        rule = "unreachable" if isinstance(error.__cause__, httpx2.ConnectTimeout) else "stall"
        return ModelError(ErrorKind.TRANSIENT, repr(error), rule=rule, request_id=request_id)
    if isinstance(error, anthropic.APIConnectionError):
        return ModelError(ErrorKind.TRANSIENT, repr(error.__cause__ or error), rule="unreachable")
    if isinstance(error, (httpx2.HTTPError, httpx2.StreamError)):
        return ModelError(ErrorKind.TRANSIENT, repr(error), rule="dropped", request_id=request_id)
    return ModelError(ErrorKind.UNKNOWN, repr(error), rule="client", request_id=request_id)


def _from_status(error: anthropic.APIStatusError, model: Model) -> ModelError:
    body = error.body or ""
    body = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    verdict = classify(error.status_code, error.type or "", body)
    detail = f"{error.status_code} {body or error.message}"[: 2 * DETAIL_MAX_CHARS]
    if model.api_key and model.provider != "emulator":
        detail = detail.replace(model.api_key, "[redacted]")
    return ModelError(
        verdict.kind,
        detail,
        rule=verdict.rule,
        status=error.status_code,
        request_id=error.request_id or "",
        retry_after=_retry_after(error.response.headers),
        figures=verdict.figures,
        is_thinking_error=verdict.is_thinking_error,
    )


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds that the server asks to wait. A date instead of a number is not worth a clock comparison."""
    for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _garbled(request_id: str, what: str) -> ModelError:
    return ModelError(
        ErrorKind.TRANSIENT,
        f"The stream cannot be read: {what}",
        rule="garbled",
        request_id=request_id,
    )
