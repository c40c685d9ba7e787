"""One question of memory's own to a light model, in the background: within the budget, in the ledger, never inside a
database transaction."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from accounts.models import User
from llm import budgets, catalog, estimates, router
from llm.calls import Answered, Prepared, ask
from llm.catalog import Model
from llm.errors import ModelError
from llm.events import Answer, StreamEvent
from llm.ledger import close_call, open_call, outcome_of
from llm.models import ModelCall
from llm.wire import Anchor, WireMessage, betas_of, body_bytes, body_sha256, header_text, remember_header
from maxclaw.database_threads import in_database
from threads.transcript import lock_thread

ANSWER_MAX_TOKENS = 6_000


@dataclass(frozen=True)
class BackgroundCall:
    """What is the same in every request of one piece of work. `purpose` is one of ModelCall.Purpose; `category` that of
    the words which the model reads."""

    purpose: str
    owner_id: int
    category: str
    system: str
    tools: Sequence[dict[str, Any]]
    thread_id: int | None = None
    generation_id: int | None = None
    tool_choice: dict[str, Any] | None = None

    async def ask(self, messages: Sequence[WireMessage]) -> tuple[Answer, ModelCall]:
        """The answer, and its call, which is closed. The first message is anchored: later requests read it again.

        Raises ModelError, BudgetExhausted, NoModelForCategory, and ThreadGone when the conversation was erased
        meanwhile, also between two attempts. A call that is cancelled is closed as interrupted.
        """
        models = router.candidates(catalog.LIGHT, self.category)
        opened: list[Prepared] = []

        async def build(model: Model, attempt: int, max_tokens: int | None) -> Prepared:
            limit = max_tokens or min(model.answer_tokens, ANSWER_MAX_TOKENS)
            prepared = await in_database(self._open, model, messages, attempt, limit)
            opened.append(prepared)
            return prepared

        try:
            answered = await ask(models, build, _no_event, _no_retry)
        except asyncio.CancelledError:
            if opened:
                await asyncio.shield(in_database(_close_interrupted, opened[-1]))
            raise
        await in_database(_close, answered)
        return answered.answer, answered.prepared.call

    def _open(self, model: Model, messages: Sequence[WireMessage], attempt: int, limit: int) -> Prepared:
        header = header_text(model=model, tools=self.tools, system=self.system, tool_choice=self.tool_choice)
        anchors = [Anchor(messages[0].last_id, "5m")]
        body = body_bytes(header, messages, anchors, limit)
        with transaction.atomic():
            if self.thread_id is not None:
                lock_thread(self.thread_id)  # no call of a conversation is written behind its erasure
            owner = User.objects.get(pk=self.owner_id)
            estimated = estimates.estimate_tokens(body.decode(), model)
            call = open_call(
                purpose=self.purpose,
                owner_id=self.owner_id,
                thread_id=self.thread_id,
                generation_id=self.generation_id,
                header=remember_header(header),
                model=model,
                body_sha256=body_sha256(body),
                last_message_id=None,
                cut=0,
                thinking_from=0,
                anchors=anchors,
                max_tokens=limit,
                attempt=attempt,
                reserve=budgets.reserve(owner, model, estimated, limit, self.purpose),
            )
        return Prepared(call, model, body, betas_of(header), limit)


async def _no_event(_event: StreamEvent) -> None:
    return None


async def _no_retry(_error: ModelError, _will_retry: bool) -> None:
    return None


def _close(answered: Answered) -> None:
    prepared, said = answered.prepared, answered.answer
    close_call(
        prepared.call,
        outcome=outcome_of(said.stop_reason),
        usage=said.usage,
        stop_reason=said.stop_reason,
        first_token_ms=prepared.first_token_ms,
        total_ms=prepared.total_ms,
    )


def _close_interrupted(prepared: Prepared) -> None:
    close_call(prepared.call, outcome=ModelCall.Outcome.INTERRUPTED, usage=prepared.usage, total_ms=prepared.total_ms)
