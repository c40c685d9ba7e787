"""One call of `POST /v1/messages`, from its bytes to the last event of its answer."""

import hashlib
import json
from typing import Any

from starlette.types import Receive, Scope, Send

from llm.emulator import mind
from llm.emulator.answers import Answer, block_from, new_id
from llm.emulator.caching import CachePlan
from llm.emulator.connection import ClientGone, Connection
from llm.emulator.errors import ApiError, error_body, error_bytes
from llm.emulator.faults import IN_ANSWER, Fault, fault_from_words
from llm.emulator.prompt import Prompt, bind_block, lay_out
from llm.emulator.request_log import LogEntry
from llm.emulator.request_shape import MessagesRequest, check_headers, parse_body, read_request
from llm.emulator.state import EmulatorState
from llm.emulator.streaming import StreamBroken, hold, stall, stream
from maxclaw import clock

ORGANIZATION_ID = "00000000-0000-4000-8000-000000000001"
RATE_LIMIT_HEADERS = {
    "anthropic-ratelimit-requests-limit": "4000",
    "anthropic-ratelimit-requests-remaining": "3999",
    "anthropic-ratelimit-tokens-limit": "2000000",
    "anthropic-ratelimit-tokens-remaining": "2000000",
}


class Exchange:
    """The ASGI application behind the two message endpoints. `counting`: only count the prompt's tokens."""

    def __init__(self, state: EmulatorState, *, counting: bool = False) -> None:
        self._state = state
        self._counting = counting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = Connection(scope, receive, send)
        entry = self._state.log.open(scope["path"], connection.headers, new_id("req"))
        try:
            await self._serve_or_refuse(connection, entry)
        except ClientGone:
            entry.end("cancelled")
        except StreamBroken as broken:
            entry.end(f"fault:{broken}")
        finally:
            connection.close()
            if entry.outcome == "open":
                entry.end("crashed")

    async def _serve_or_refuse(self, connection: Connection, entry: LogEntry) -> None:
        try:
            await self._serve(connection, entry)
        except RecursionError:
            await _refuse(connection, entry, ApiError("The request body is not valid JSON: it is nested too deeply"))
        except ApiError as error:
            await _refuse(connection, entry, error)

    async def _serve(self, connection: Connection, entry: LogEntry) -> None:
        started = clock.now().timestamp()
        raw = await connection.body()
        self._state.log.keep_body(entry, raw)
        key, version, betas = check_headers(connection.headers)
        request = read_request(
            parse_body(raw),
            self._state.models,
            version,
            betas,
            counting=self._counting,
            leading_assistant=self._state.allow_leading_assistant,
        )
        entry.model, entry.stream = request.model.id, request.stream
        prompt = lay_out(request)
        if self._counting:
            entry.begin(200)
            counted = json.dumps({"input_tokens": prompt.total_tokens}).encode()
            await _send_json(connection, entry, 200, counted, {})
            entry.end("completed")
            return
        window = request.model.context_window_tokens
        if prompt.total_tokens > window:
            raise ApiError(f"prompt is too long: {prompt.total_tokens} tokens > {window} maximum")
        entry.dropped_thinking = prompt.dropped_thinking
        await self._answer(connection, entry, request, prompt, scope=_workspace(key, request), started=started)

    async def _answer(
        self,
        connection: Connection,
        entry: LogEntry,
        request: MessagesRequest,
        prompt: Prompt,
        *,
        scope: str,
        started: float,
    ) -> None:
        state = self._state
        fault = state.faults.take(request) or self._fault_by_word(request)
        if fault is not None and fault.kind == "status":
            status, headers, body = fault.response(entry.request_id)
            entry.begin(status)
            await _send_json(connection, entry, status, body, headers)
            raise StreamBroken(fault.kind)
        plan = state.cache.plan(prompt, scope=scope, minimum_tokens=request.model.cache_minimum_tokens, started=started)
        entry.cache = {"read_position": plan.read_position, "positions": len(prompt.pieces)}
        answer = self._make_answer(request, prompt, entry)
        if fault is not None and fault.kind == "cut_tool_json":
            answer.cut_tool_json()
        self._finish(answer, request, prompt)
        entry.stop_reason = answer.stop_reason
        if fault is not None and fault.kind == "hold":
            await hold(connection, fault.name, state.holds)
        if answer.hold is not None:
            await hold(connection, answer.hold, state.holds)
        pace = answer.pace or state.pace
        await connection.sleep(pace.first_token_ms / 1000)
        entry.usage = _usage(plan, answer)
        message = _message(request, prompt, entry)
        in_answer = fault if fault is not None and fault.kind in IN_ANSWER else None
        if not request.stream:
            await self._send_whole(connection, entry, answer, message, plan, in_answer)
            return
        entry.begin(200)
        state.cache.commit(plan)
        await connection.start(200, {"content-type": "text/event-stream; charset=utf-8", **_headers(entry.request_id)})
        message["usage"] = {**_usage(plan, answer), "output_tokens": 1}
        message["usage"].pop("output_tokens_details", None)
        await stream(
            connection,
            answer,
            message,
            entry.usage,
            pace=pace,
            fault=in_answer,
            holds=state.holds,
            entry=entry,
        )
        entry.end(_outcome(in_answer))

    def _fault_by_word(self, request: MessagesRequest) -> Fault | None:
        if not self._state.demo_faults:
            return None
        words = [block["text"] for _, _, block in request.turns[-1].blocks if block["type"] == "text"]
        own = [text for text in words if not text.lstrip().startswith("<framework>")]
        return fault_from_words("\n".join(own))

    def _make_answer(self, request: MessagesRequest, prompt: Prompt, entry: LogEntry) -> Answer:
        if request.max_tokens == 0:
            entry.answered_by = "warming"
            return Answer([], stop_reason="max_tokens")
        scripted = self._state.answers.take(request)
        if scripted is not None:
            entry.answered_by = "script"
            return scripted.build()
        entry.answered_by = "mind"
        return Answer([block_from(block) for block in mind.answer(request)])

    def _finish(self, answer: Answer, request: MessagesRequest, prompt: Prompt) -> None:
        """Bring the answer within the limits, sign its thinking, and drop thinking that was not asked for."""
        if not request.thinking:
            answer.blocks = [block for block in answer.blocks if not block.is_thinking]
        room = request.model.context_window_tokens - prompt.total_tokens
        reason = "max_tokens" if request.max_tokens <= room else "model_context_window_exceeded"
        answer.finish(min(request.max_tokens, room), reason, request.stop_sequences)
        response, ordinal = new_id("msg"), 0
        for block in answer.blocks:
            if not block.is_thinking:
                bind_block(prompt, block.whole())
                continue
            omitted = block.kind == "redacted_thinking" or request.thinking_display == "omitted"
            signature = prompt.chain.sign(
                block.text,
                model=request.model.id,
                response=response,
                ordinal=ordinal,
                binding=prompt.binding.digest(),
                omitted=omitted,
            )
            ordinal += 1
            if block.kind == "thinking":
                block.signature = signature
            else:
                block.data = signature
            if omitted:
                block.pieces = []

    async def _send_whole(
        self,
        connection: Connection,
        entry: LogEntry,
        answer: Answer,
        message: dict[str, Any],
        plan: CachePlan,
        fault: Fault | None,
    ) -> None:
        """The answer without a stream; faults that strike in the middle strike before it."""
        if fault is not None and fault.kind == "stall":
            await stall(connection, fault, self._state.holds)
        elif fault is not None and fault.kind == "error_event":
            error_type, text = fault.error(529)
            body = json.dumps(error_body(error_type, text, entry.request_id)).encode()
            entry.begin(529)
            await _send_json(connection, entry, 529, body, {})
            raise StreamBroken(fault.kind)
        elif fault is not None and fault.kind in ("drop", "end_without_stop"):
            await connection.drop()
            raise StreamBroken(fault.kind)
        pace = answer.pace or self._state.pace
        if pace.tokens_per_second:
            await connection.sleep(answer.output_tokens / pace.tokens_per_second)
        message["content"] = [block.whole() for block in answer.blocks]
        message["stop_reason"] = answer.stop_reason
        message["stop_sequence"] = answer.stop_sequence
        message["usage"] = entry.usage
        entry.begin(200)
        self._state.cache.commit(plan)
        await _send_json(connection, entry, 200, json.dumps(message, ensure_ascii=False).encode(), {})
        entry.end(_outcome(fault))


async def _refuse(connection: Connection, entry: LogEntry, error: ApiError) -> None:
    entry.error = error.message
    entry.begin(error.status)
    await _send_json(connection, entry, error.status, error_bytes(error, entry.request_id), error.headers)
    entry.end("refused")


def _outcome(fault: Fault | None) -> str:
    """How an answer that was sent whole ended; a fault after which it goes on is named too."""
    return f"fault:{fault.kind}" if fault else "completed"


def _workspace(key: str, request: MessagesRequest) -> str:
    """Caches are apart for every key, as they are for workspaces, and for every model."""
    return f"{hashlib.sha256(key.encode()).hexdigest()[:16]}/{request.model.id}"


def _message(request: MessagesRequest, prompt: Prompt, entry: LogEntry) -> dict[str, Any]:
    message: dict[str, Any] = {
        "id": new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": request.model.id,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "usage": entry.usage,
    }
    if request.drop_mismatched_thinking and prompt.dropped_thinking:
        message["input_transformations"] = prompt.dropped_thinking
    return message


def _usage(plan: CachePlan, answer: Answer) -> dict[str, Any]:
    usage: dict[str, Any] = {
        "input_tokens": plan.input_tokens,
        "cache_creation_input_tokens": plan.write_5m_tokens + plan.write_1h_tokens,
        "cache_read_input_tokens": plan.read_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": plan.write_5m_tokens,
            "ephemeral_1h_input_tokens": plan.write_1h_tokens,
        },
        "output_tokens": answer.output_tokens,
        "service_tier": "standard",
    }
    if answer.thinking_tokens:
        usage["output_tokens_details"] = {"thinking_tokens": answer.thinking_tokens}
    return usage


def _headers(request_id: str) -> dict[str, str]:
    return {"request-id": request_id, "anthropic-organization-id": ORGANIZATION_ID, **RATE_LIMIT_HEADERS}


async def _send_json(
    connection: Connection, entry: LogEntry, status: int, body: bytes, headers: dict[str, str]
) -> None:
    base = {"content-type": "application/json", **_headers(entry.request_id)}
    await connection.start(status, {**base, **headers, "content-length": str(len(body))})
    await connection.finish(body)
