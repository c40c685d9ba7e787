"""One round of tools: policy, then execution, several at once where the tools say that it is safe, each within its time
limit. Every call gets exactly one result before the next request."""

import asyncio
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db import transaction

from agent.events import emit_all
from agent.leases import Holding
from agent.models import ToolCall
from agent.policy import SHADOW_TOOL, Policy
from agent.projection import tool_view
from agent.registry import Tool, ToolContext, ToolOutput, WaitForUser, get
from agent.tool_results import mark_running, round_tokens, store_result
from agent.tool_running import run_tool
from llm.catalog import Model
from llm.estimates import estimate_tokens
from maxclaw import clock
from maxclaw.database_threads import in_database
from threads.models import Generation
from threads.transcript import lock_thread


@dataclass
class RoundResult:
    """What a round came to: whether a question card now waits, and whether only refused proposals were called."""

    waiting: bool = False
    only_refused_proposals: bool = False


@dataclass
class _Planned:
    call: ToolCall
    tool: Tool | None
    refusal: str | None  # a sentence: the call does not run
    refused_by_policy: bool = False

    @property
    def parallel(self) -> bool:
        return self.refusal is not None or (self.tool is not None and self.tool.parallel_safe)


class Round:
    """The calls of one answer."""

    def __init__(
        self, holding: Holding, calls: list[ToolCall], bad_calls: dict[str, str], policy: Policy, model: Model
    ) -> None:
        self.holding, self.model = holding, model
        self.planned = [self._plan(call, bad_calls, policy) for call in calls]
        self.left_tokens = round_tokens(model)
        self.left_calls = len(calls)

    async def run(self) -> RoundResult:
        """Run every call in order, neighbours that are safe to run at once together. Raises LeaseLost, ThreadGone."""
        result = RoundResult()
        for parallel, group in groupby(self.planned, key=lambda planned: planned.parallel):
            batch = list(group)
            batches = [batch] if parallel else [[planned] for planned in batch]
            for together in batches:
                runnable = [planned.call for planned in together if planned.refusal is None]
                if runnable:
                    await in_database(self._start, runnable)
                outcomes = await asyncio.gather(*(self._run_one(planned) for planned in together))
                result.waiting |= any(outcomes)
        result.only_refused_proposals = all(
            planned.refused_by_policy and planned.call.tool == SHADOW_TOOL for planned in self.planned
        )
        return result

    def _plan(self, call: ToolCall, bad_calls: dict[str, str], policy: Policy) -> _Planned:
        tool = get(call.tool)
        refusal = policy.refusal(tool, call.tool)
        if refusal is not None or tool is None:
            return _Planned(call, tool, refusal, refused_by_policy=True)
        return _Planned(call, tool, bad_calls.get(call.call_id) or tool.objection(call.arguments))

    async def _run_one(self, planned: _Planned) -> bool:
        """Run one call and store its result. True when it waits for the user instead."""
        if planned.refusal is not None:
            status = ToolCall.Status.REFUSED if planned.refused_by_policy else ToolCall.Status.FAILED
            await in_database(self._store, planned.call, ToolOutput(planned.refusal, True), status, None)
            return False
        assert planned.tool is not None
        started = clock.monotonic()
        try:
            output = await self._call(planned.tool, planned.call)
        except WaitForUser:
            await in_database(self._wait, planned.call)
            return True
        status = ToolCall.Status.FAILED if output.is_error else ToolCall.Status.DONE
        duration_ms = int((clock.monotonic() - started) * 1000)
        await in_database(self._store, planned.call, output, status, duration_ms)
        return False

    async def _call(self, tool: Tool, call: ToolCall) -> ToolOutput:
        context = ToolContext(
            thread_id=self.holding.thread_id,
            owner_id=self.holding.owner_id,
            frame_id=self.holding.frame_id,
            call_id=call.pk,
            token=self.holding.token,
        )
        return await run_tool(tool, context, call.arguments)

    def _start(self, calls: list[ToolCall]) -> None:
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            mark_running(calls)
            events = [("tool", {"message": call.message_id, "call": tool_view(call)}) for call in calls]
            emit_all(thread.pk, thread.owner_id, events)

    def _store(self, call: ToolCall, output: ToolOutput, status: ToolCall.Status, duration_ms: int | None) -> None:
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            generation = Generation.objects.get(pk=self.holding.generation_id)
            # Under the row lock, so results that come at once share what is left: each may take its even part of it,
            # and what it leaves goes to the others.
            allowance = self.left_tokens // max(self.left_calls, 1)
            result = store_result(
                thread,
                generation,
                call,
                output.text,
                status=status,
                is_error=output.is_error,
                allowance_tokens=allowance,
                model=self.model,
                duration_ms=duration_ms,
                meta=_left_out(output),
            )
            self.left_tokens -= min(estimate_tokens(result.text, self.model), allowance)
            self.left_calls -= 1
            emit_all(
                thread.pk,
                thread.owner_id,
                [("tool", {"message": call.message_id, "call": tool_view(call, result)})],
            )

    def _wait(self, call: ToolCall) -> None:
        with transaction.atomic():
            thread = lock_thread(self.holding.thread_id, self.holding.token)
            call.status = ToolCall.Status.WAITING
            call.save(update_fields=["status"])
            # Kept free for the answer (`share_of_card`), whose words cannot be shortened.
            self.left_tokens -= self.left_tokens // max(self.left_calls, 1)
            self.left_calls -= 1
            emit_all(thread.pk, thread.owner_id, [("tool", {"message": call.message_id, "call": tool_view(call)})])


def _left_out(output: ToolOutput) -> dict[str, Any]:
    if output.left_out is None:
        return {}
    return {"left_out": {"count": output.left_out, "exact": output.left_out_exact}}
