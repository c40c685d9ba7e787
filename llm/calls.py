"""One question to a model, with retries, a smaller output limit where that helps, and other models after it."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from django.conf import settings

from llm import estimates, ledger, provider, router
from llm.catalog import Model
from llm.errors import ErrorKind, Figures, ModelError
from llm.events import Answer, Started, StreamEvent, TextDelta, ThinkingDelta, ToolUseStarted
from llm.models import ModelCall
from llm.prices import Usage
from maxclaw import clock
from maxclaw.database_threads import in_database

# A server that asks for a longer wait than this is not waited for: the next model is asked.
LONGEST_WAIT_SECONDS = 30
SMALLEST_OUTPUT_TOKENS = 256
# The rule's name in an error that `ask` itself makes: an attempt took longer than it may.
TOO_SLOW = "too_slow"
# What an estimate of the input may be off by when the output limit is lowered beside it.
OUTPUT_MARGIN_TOKENS = 64

FIRST_SIGNS = (TextDelta, ThinkingDelta, ToolUseStarted)


@dataclass
class Prepared:
    """A request that stands in the ledger and is ready to go out.

    `usage`, `first_token_ms` and `total_ms` are filled in while it runs, for whoever has to close an
    interrupted call.
    """

    call: ModelCall
    model: Model
    body: bytes
    betas: Sequence[str]
    max_tokens: int
    usage: Usage | None = None
    first_token_ms: int | None = None
    total_ms: int | None = None


@dataclass(frozen=True)
class Answered:
    """An answer and the request that it answers. Its call is still open."""

    prepared: Prepared
    answer: Answer


Build = Callable[[Model, int, int | None], Awaitable[Prepared]]
OnEvent = Callable[[StreamEvent], Awaitable[None]]
OnRetry = Callable[[ModelError, bool], Awaitable[None]]


async def ask(
    models: Sequence[Model],
    build: Build,
    on_event: OnEvent,
    on_retry: OnRetry,
    *,
    retries: int | None = None,
    seconds: float | None = None,
    tells_health: bool = True,
) -> Answered:
    """Ask the models in order until one answers.

    `build(model, attempt, max_tokens)` writes the ledger row and the body; attempts count from 1 over all
    models; `max_tokens` is None for the usual limit. `on_event` gets every event but the Answer. After each
    failed attempt, which is closed in the ledger here, `on_retry(error, will_retry)` is awaited: what was
    shown of it is void.

    A transient error is retried up to `retries` times (None: settings.MODEL_RETRIES) with jitter, then the next
    model is asked; so it is at once when an attempt takes longer than `seconds` (None: it may take any time). An
    output cap is tried once more with a smaller `max_tokens`; a credential or unknown error goes to the next
    model. A full context and a thinking error are raised at once: another model is no remedy for them.
    What becomes of a model is told to the router, unless `tells_health` is False.
    Raises the last ModelError. The call of a success is not closed: the caller does that in the transaction
    that stores the answer. On cancellation nothing is closed; the caller holds what it prepared.
    """
    allowed = settings.MODEL_RETRIES if retries is None else retries
    attempt = 0
    for position, model in enumerate(models):
        is_last_model = position == len(models) - 1
        max_tokens: int | None = None
        retried = 0
        while True:
            attempt += 1
            prepared = await build(model, attempt, max_tokens)
            try:
                answer = await _run(prepared, on_event, seconds)
            except ModelError as error:
                await in_database(_close_failed, prepared, error)
                failure = error
            else:
                if tells_health:
                    router.report(model, None)
                return Answered(prepared, answer)
            if failure.kind is ErrorKind.CONTEXT_FULL or failure.is_thinking_error:
                await on_retry(failure, False)
                raise failure
            if failure.kind is ErrorKind.OUTPUT_CAP and max_tokens is None:
                max_tokens = smaller_output(prepared.max_tokens, failure.figures)
                await on_retry(failure, True)
                continue
            wait = _wait_seconds(failure, retried, allowed)
            if wait is None:
                break
            retried += 1
            await on_retry(failure, True)
            await asyncio.sleep(wait)
        if tells_health:
            router.report(model, failure)
        await on_retry(failure, not is_last_model)
        if is_last_model:
            raise failure
    raise ValueError("there is no model to ask")


async def _run(prepared: Prepared, on_event: OnEvent, seconds: float | None) -> Answer:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _stream(prepared, on_event)
    except TimeoutError:
        if not limit.expired():
            raise
        detail = f"There was no whole answer after {seconds} seconds."
        raise ModelError(ErrorKind.TRANSIENT, detail, rule=TOO_SLOW) from None


async def _stream(prepared: Prepared, on_event: OnEvent) -> Answer:
    estimate = _sample(prepared)
    started = clock.monotonic()
    events = provider.stream(prepared.model, prepared.body, prepared.betas)
    try:
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, Answer):
                    prepared.usage = event.usage
                    if estimate is not None:
                        prepared.call.estimated_tokens = await estimate
                    return event
                if isinstance(event, Started):
                    prepared.usage = event.usage
                elif prepared.first_token_ms is None and isinstance(event, FIRST_SIGNS):
                    prepared.first_token_ms = _milliseconds_since(started)
                await on_event(event)
    finally:
        prepared.total_ms = _milliseconds_since(started)
    raise ModelError(ErrorKind.TRANSIENT, "The stream had no answer.", rule="truncated")


def _sample(prepared: Prepared) -> "asyncio.Future[int] | None":
    """The general estimate of a request now and then, made on a thread while the model answers: beside the usage
    that comes back it corrects later estimates."""
    if prepared.call.estimated_tokens is not None or not estimates.take_sample(prepared.model.name):
        return None
    text = prepared.body.decode()
    return asyncio.get_running_loop().run_in_executor(None, estimates.estimate_tokens, text)


def _milliseconds_since(started: float) -> int:
    return round((clock.monotonic() - started) * 1000)


def _close_failed(prepared: Prepared, error: ModelError) -> None:
    ledger.close_call(
        prepared.call,
        outcome=error.kind.value,
        usage=prepared.usage,
        error=error,
        first_token_ms=prepared.first_token_ms,
        total_ms=prepared.total_ms,
    )


def _wait_seconds(error: ModelError, retried: int, allowed: int) -> float | None:
    """How long to wait before the same model is asked again; None: not again."""
    if error.kind is not ErrorKind.TRANSIENT or error.rule == TOO_SLOW or retried >= allowed:
        return None
    if error.retry_after is not None and error.retry_after > LONGEST_WAIT_SECONDS:
        return None
    backoff: float = settings.MODEL_RETRY_BASE_SECONDS * 2**retried
    return max(error.retry_after or 0.0, min(backoff, LONGEST_WAIT_SECONDS)) * random.uniform(1.0, 1.25)  # noqa: S311  (jitter, no secret)


def smaller_output(asked: int, figures: Figures | None) -> int:
    """A `max_tokens` that fits after an output cap error: by the figures it told, else half."""
    smaller = asked // 2
    if figures is not None and figures.output_limit:
        smaller = figures.output_limit
    elif figures is not None and figures.window and figures.input:
        smaller = figures.window - figures.input - OUTPUT_MARGIN_TOKENS
    return max(min(smaller, asked - 1), min(SMALLEST_OUTPUT_TOKENS, asked))
