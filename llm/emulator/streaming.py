"""An answer as server-sent events, at a pace, with the faults that strike in the middle of it."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from llm.emulator.answers import Answer
from llm.emulator.connection import Connection
from llm.emulator.errors import error_body
from llm.emulator.faults import Fault
from llm.emulator.request_log import Holds, LogEntry
from llm.emulator.state import Pace
from llm.emulator.tokens import token_weight

# How long an answer at a pace is silent before a ping shows that it is alive.
PING_SECONDS = 10.0
FLUSH_BYTES = 16_384


def sse(name: str, data: dict[str, Any]) -> bytes:
    """One event, its data on one line."""
    text = json.dumps({"type": name, **data}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {text}\n\n".encode("utf-8", "surrogatepass")


def events(answer: Answer) -> Iterator[tuple[bytes, float, bool]]:
    """The events between message_start and message_delta: (bytes, tokens, whether it is a delta)."""
    pinged = False
    for index, block in enumerate(answer.blocks):
        yield sse("content_block_start", {"index": index, "content_block": block.start()}), 0.0, False
        if not pinged:
            yield b'event: ping\ndata: {"type": "ping"}\n\n', 0.0, False
            pinged = True
        if block.kind == "tool_use":
            delta = {"index": index, "delta": block.delta("")}
            yield sse("content_block_delta", delta), 0.0, False
        for piece in block.pieces:
            delta = {"index": index, "delta": block.delta(piece)}
            yield sse("content_block_delta", delta), token_weight(piece), True
        if block.kind == "thinking":
            signed = {"type": "signature_delta", "signature": block.signature}
            yield sse("content_block_delta", {"index": index, "delta": signed}), 0.0, False
        yield sse("content_block_stop", {"index": index}), 0.0, False


class StreamBroken(Exception):
    """A fault ended the stream before its end; the connection is as the fault leaves it."""


async def stream(
    connection: Connection,
    answer: Answer,
    message: dict[str, Any],
    final_usage: dict[str, Any],
    *,
    pace: Pace,
    fault: Fault | None,
    holds: Holds,
    entry: LogEntry,
) -> None:
    """Send the whole answer; headers are out already. `message` is the one of message_start.

    Raises ClientGone when the client goes away, StreamBroken when a fault ended it.
    """
    waiting = bytearray(sse("message_start", {"message": message}))

    async def flush() -> None:
        if waiting:
            await connection.chunk(bytes(waiting))
            waiting.clear()

    strikes = fault is not None and fault.kind != "cut_tool_json"
    if strikes and fault is not None and fault.after_deltas <= 0:
        await flush()
        strikes = await _strike(connection, fault, holds, entry)
    for data, tokens, is_delta in events(answer):
        if is_delta and pace.tokens_per_second:
            await flush()
            await _pause(connection, tokens / pace.tokens_per_second)
        waiting += data
        if pace.tokens_per_second or len(waiting) > FLUSH_BYTES:
            await flush()
        if is_delta:
            entry.deltas_sent += 1
            if strikes and fault is not None and entry.deltas_sent == fault.after_deltas:
                await flush()
                strikes = await _strike(connection, fault, holds, entry)
    if strikes and fault is not None:
        await flush()
        await _strike(connection, fault, holds, entry)
    ending = {"stop_reason": answer.stop_reason, "stop_sequence": answer.stop_sequence}
    waiting += sse("message_delta", {"delta": ending, "usage": final_usage})
    waiting += sse("message_stop", {})
    await connection.finish(bytes(waiting))


async def _pause(connection: Connection, seconds: float) -> None:
    while seconds > PING_SECONDS:
        await connection.sleep(PING_SECONDS)
        await connection.chunk(b'event: ping\ndata: {"type": "ping"}\n\n')
        seconds -= PING_SECONDS
    await connection.sleep(seconds)


async def _strike(connection: Connection, fault: Fault, holds: Holds, entry: LogEntry) -> bool:
    """Let `fault` happen here. Returns False when the stream goes on afterwards, else raises StreamBroken."""
    if fault.kind == "stall":
        await stall(connection, fault, holds)
        return False
    # Before it happens: whoever sees the fault finds it in the log.
    entry.end(f"fault:{fault.kind}")
    if fault.kind == "error_event":
        error_type, text = fault.error(529)
        body = error_body(error_type, text, entry.request_id)
        await connection.chunk(sse("error", body))
        await connection.finish()
    elif fault.kind == "drop":
        await connection.drop()
    else:
        await connection.finish()
    raise StreamBroken(fault.kind)


async def stall(connection: Connection, fault: Fault, holds: Holds) -> None:
    """Silence for the fault's seconds, or until it is released by name."""
    if fault.seconds is not None:
        await connection.sleep(fault.seconds)
        return
    await hold(connection, fault.name, holds)


async def hold(connection: Connection, name: str, holds: Holds) -> None:
    """Wait until `name` is released. Raises ClientGone when the client goes first."""
    event: asyncio.Event = holds.enter(name)
    try:
        await connection.wait(event.wait())
    finally:
        holds.leave(event)
