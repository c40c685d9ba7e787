"""Server-sent events in the real order and shape, at a pace, and ended at once when nobody listens."""

import asyncio
import time
from typing import Any

import anthropic
import httpx2
import pytest
from asgiref.sync import async_to_sync

from llm.emulator.client import raw_tool_use, text, thinking, tool_use
from tests.llm.emulator.asking import ADAPTIVE, MAIN, TOOLS, ask, user

PARAMETERS: dict[str, Any] = {"model": MAIN, "max_tokens": 2_000, "messages": [user("hi")], "tools": TOOLS}


def streamed(client, **changes):
    """(raw event types without the SDK's own, final message)."""
    synthetic = {"text", "thinking", "signature", "citation", "input_json"}
    with client.messages.stream(**{**PARAMETERS, **changes}) as stream:
        kinds = [event.type for event in stream if event.type not in synthetic]
        return kinds, stream.get_final_message()


def test_events_come_in_the_real_order(emulator, client):
    emulator.answer(thinking("Hm."), "Hello.", tool_use("clock", {"zone": "UTC"}))
    kinds, message = streamed(client, thinking=ADAPTIVE)
    thought = ["content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"]
    said = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert kinds == ["message_start", *thought, *said, *thought, "message_delta", "message_stop"]
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.stop_reason == "tool_use"


def test_the_bytes_on_the_wire(emulator, client):
    emulator.answer(text("ab", pieces=["a", "b"]), tool_use("clock", {}, call_id="toolu_1"))
    with client.messages.with_streaming_response.create(**{**PARAMETERS, "stream": True}) as response:
        raw = b"".join(response.iter_bytes()).decode()
        headers = response.headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["request-id"].startswith("req_")
    names = [line.removeprefix("event: ") for line in raw.split("\n") if line.startswith("event: ")]
    assert names == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert 'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}\n\n' in raw
    assert (
        'data: {"type":"content_block_start","index":1,"content_block":'
        '{"type":"tool_use","id":"toolu_1","name":"clock","input":{}}}\n\n' in raw
    )
    assert '"delta":{"type":"input_json_delta","partial_json":""}' in raw
    assert 'event: message_stop\ndata: {"type":"message_stop"}\n\n' in raw


def test_tool_json_goes_out_in_the_pieces_that_a_script_gives(emulator, client):
    emulator.answer(raw_tool_use("clock", ['{"a": 1.50, "b"', ": [1e5, ", '"x"]}']))
    message = streamed(client)[1]
    assert message.content[0].input == {"a": 1.5, "b": [100_000.0, "x"]}


@pytest.mark.parametrize(
    "words",
    ["plain", "日本語のテキスト", "👩‍👩‍👧‍👦 family", "nul \x00 and \u2028 separators", '"quotes" \\ back'],
)
def test_any_script_arrives_unharmed(emulator, client, words):
    emulator.answer(words * 9)
    assert streamed(client)[1].content[0].text == words * 9


def test_stop_sequences_end_the_text(emulator, client):
    emulator.answer("one two STOP three", tool_use("clock"))
    message = streamed(client, stop_sequences=["STOP", "four"])[1]
    assert (message.content[0].text, message.stop_reason, message.stop_sequence) == (
        "one two ",
        "stop_sequence",
        "STOP",
    )


def test_max_tokens_cut_the_answer_exactly(emulator, client):
    emulator.answer("x" * 4_000)
    message = streamed(client, max_tokens=100)[1]
    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 100)
    assert 380 <= len(message.content[0].text) <= 400


def test_whole_and_streamed_answers_are_equal(emulator, client):
    emulator.answer("Hello.", tool_use("clock", {"a": [1, {"b": None}]}, call_id="toolu_1"), times=2)
    whole, (_, parts) = ask(client, "hi", tools=TOOLS), streamed(client)
    assert [block.to_dict() for block in whole.content] == [block.to_dict() for block in parts.content]
    assert whole.usage.output_tokens == parts.usage.output_tokens


def test_the_pace_spreads_the_deltas(emulator, client):
    emulator.answer("word " * 40, pace={"first_token_ms": 100, "tokens_per_second": 250})
    started = time.monotonic()
    arrivals = []
    with client.messages.stream(**PARAMETERS) as stream:
        arrivals = [time.monotonic() - started for event in stream if event.type == "text"]
    assert arrivals[0] >= 0.1
    assert arrivals[-1] - arrivals[0] >= 0.13
    assert len(arrivals) == 9


def test_the_pace_of_the_process_can_be_changed(emulator, client):
    emulator.set_pace("80:")
    started = time.monotonic()
    ask(client, "hi")
    assert time.monotonic() - started >= 0.08
    emulator.set_pace("instant")
    ask(client, "hi")
    assert emulator.last_request()["first_byte_seconds"] < 0.05


def test_a_client_that_leaves_stops_the_answer_at_once(emulator, client):
    emulator.answer("word " * 1_000, pace="0:50")

    async def leave_early() -> None:
        async with (
            anthropic.AsyncAnthropic(api_key="k", base_url=emulator.base_url) as sdk,
            sdk.messages.stream(**PARAMETERS) as stream,
        ):
            async for event in stream:
                if event.type == "text":
                    break

    async_to_sync(leave_early)()
    (entry,) = emulator.wait_for_requests(1, seconds=2)
    assert entry["outcome"] == "cancelled"
    assert entry["deltas_sent"] < 10


def test_a_cancelled_task_is_noticed_before_the_first_byte(emulator, client):
    emulator.answer("Never.", hold="forever")

    async def cancel() -> None:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=emulator.base_url) as sdk:
            asking = asyncio.create_task(sdk.messages.create(**PARAMETERS))
            await asyncio.to_thread(emulator.wait_for_held)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    async_to_sync(cancel)()
    (entry,) = emulator.wait_for_requests(1, seconds=2)
    assert (entry["outcome"], emulator.state()["held"]) == ("cancelled", [])


def test_many_answers_at_once(emulator):
    emulator.answer("word " * 20, pace="100:1000", times=50)

    async def ask_all() -> list[str]:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=emulator.base_url) as sdk:
            replies = await asyncio.gather(*[sdk.messages.create(**PARAMETERS) for _ in range(50)])
        return [reply.content[0].text for reply in replies]

    started = time.monotonic()
    assert async_to_sync(ask_all)() == ["word " * 20] * 50
    assert time.monotonic() - started < 5


def test_a_client_without_the_sdk_is_served_alike(emulator):
    body = {"model": MAIN, "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    headers = {"authorization": "Bearer k", "anthropic-version": "2023-06-01"}
    with httpx2.stream("POST", f"{emulator.base_url}/v1/messages", json=body, headers=headers) as response:
        assert response.headers["transfer-encoding"] == "chunked"
        assert response.read().endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
