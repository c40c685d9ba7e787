"""The provider through the real SDK over HTTP: what an answer becomes, and every way a stream can fail."""

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from llm import catalog, provider, wire
from llm.emulator.client import raw_tool_use, redacted_thinking, text, thinking, tool_use
from llm.errors import ErrorKind, ModelError
from llm.provider import Answer, Started, TextDelta, ThinkingDelta, ToolInputDelta, ToolUseStarted
from tests.llm.requests import CLOCK_TOOL, answer_to, body_of, events_of, header_of, user_message

ADAPTIVE = {"type": "adaptive"}


def failure_of(**request):
    with pytest.raises(ModelError) as failed:
        answer_to(**request)
    return failed.value


def test_an_answer_streams_and_ends_whole(emulator):
    emulator.answer(text("Hello world", pieces=["Hel", "lo ", "world"]))
    events = events_of()
    assert isinstance(events[0], Started)
    assert events[0].usage
    assert events[0].usage.prompt_tokens > 0
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel", "lo ", "world"]
    answer = events[-1]
    assert isinstance(answer, Answer)
    assert answer.text == "Hello world"
    assert answer.content == '[{"type":"text","text":"Hello world"}]'
    assert answer.stop_reason == "end_turn"
    assert answer.usage
    assert answer.usage.output_tokens > 0
    assert answer.request_id.startswith("req_")


def test_the_body_goes_out_byte_for_byte(emulator):
    emulator.answer("ok")
    body = body_of(catalog.get("emulator-main"), messages=[user_message("漢字 \u2028 1.50 😀")])
    async_to_sync(provider.complete)(catalog.get("emulator-main"), body)
    assert emulator.last_request()["body"].encode() == body


def test_betas_go_out_as_a_header(emulator):
    emulator.answer("ok")
    model = catalog.get("emulator-main")
    async_to_sync(provider.complete)(model, body_of(model), ["interleaved-thinking-2025-05-14"])
    headers = {name.lower(): value for name, value in emulator.last_request()["headers"].items()}
    assert headers["anthropic-beta"] == "interleaved-thinking-2025-05-14"


def test_a_tool_call_comes_back_in_canonical_form(emulator):
    emulator.answer(
        text("Let me look."),
        raw_tool_use("clock", ['{"zone": "Eu', 'rope/Berlin",  "n": 1.50, "x": {"b":1,"a":[2]}}'], call_id="t_1"),
    )
    events = events_of()
    assert [event for event in events if isinstance(event, ToolUseStarted)] == [ToolUseStarted(1, "t_1", "clock")]
    assert "".join(event.partial_json for event in events if isinstance(event, ToolInputDelta)).startswith("{")
    answer = events[-1]
    assert answer.stop_reason == "tool_use"
    assert wire.split_blocks(answer.content)[1] == (
        '{"type":"tool_use","id":"t_1","name":"clock","input":{"zone":"Europe/Berlin","n":1.5,"x":{"b":1,"a":[2]}}}'
    )
    assert answer.bad_tool_calls == {}


def test_a_tool_call_without_arguments_has_an_empty_input(emulator):
    emulator.answer(tool_use("clock", {}))
    assert answer_to().blocks[0]["input"] == {}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ('{"a": 1,}', "character"),
        ('{"a": 1} trailing', "character"),
        ('["a"]', "no object"),
        ('{"a": 1e400}', "too large"),
        ('{"a": NaN}', "no JSON number"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', "twice"),
        ('{"a": ' + "9" * 5_000 + "}", "too long"),
    ],
)
def test_a_malformed_input_goes_back_valid_and_is_named(emulator, raw, problem):
    emulator.answer(raw_tool_use("clock", [raw], call_id="t_1"))
    answer = answer_to(max_tokens=16_000)
    assert answer.blocks[0]["input"] == {"_malformed": raw}
    assert problem in answer.bad_tool_calls["t_1"]
    assert json.loads(answer.content) == answer.blocks


def test_nul_and_surrogates_in_text_and_input_are_made_visible(emulator):
    emulator.answer(
        text("a\x00b", pieces=["a\x00", "b"]),
        raw_tool_use("clock", ['{"x": "\\u0000\\ud800 ok"}'], call_id="t_1"),
    )
    answer = answer_to()
    assert answer.text == "a␀b"
    assert answer.blocks[1]["input"] == {"x": "␀\\ud800 ok"}
    answer.content.encode()
    assert "\x00" not in answer.content


def test_two_text_blocks_are_two_paragraphs_streamed_and_whole(emulator):
    emulator.answer(text("One."), text("Two."))
    events = events_of()
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "One.\n\nTwo."
    assert events[-1].text == "One.\n\nTwo."


def test_blank_text_blocks_are_dropped(emulator):
    emulator.answer(text(" \n"), tool_use("clock", {}, call_id="t_1"))
    answer = answer_to()
    assert [block["type"] for block in answer.blocks] == ["tool_use"]
    assert answer.text == ""


def test_two_calls_under_one_id_get_ids_of_their_own(emulator):
    emulator.answer(tool_use("clock", {}, call_id="same"), tool_use("clock", {}, call_id="same"))
    first, second = answer_to().blocks
    assert first["id"] == "same"
    assert second["id"].startswith("toolu_")


def test_a_tool_name_that_could_not_go_back_is_mended_and_refused(emulator):
    emulator.answer(tool_use("a tool!", {}, call_id="t_1"))
    answer = answer_to()
    assert answer.blocks[0]["name"] == "a_tool_"
    assert "t_1" in answer.bad_tool_calls


def test_thinking_goes_back_as_it_came(emulator):
    emulator.answer(thinking("Hmm."), redacted_thinking(), text("Yes."))
    events = events_of(thinking=ADAPTIVE)
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == "Hmm."
    answer = events[-1]
    assert answer.thinking == "Hmm."
    assert [block["type"] for block in answer.blocks] == ["thinking", "redacted_thinking", "text"]
    assert answer.blocks[0]["signature"]
    emulator.answer("Again.")
    following = [user_message(), wire.WireMessage(2, "assistant", answer.content), user_message("And?", 3)]
    assert answer_to(messages=following, thinking=ADAPTIVE).text == "Again."


def test_an_answer_goes_back_and_is_read_from_the_cache(emulator):
    model = catalog.get("emulator-main")
    first = [user_message("word " * 1_000)]
    emulator.answer("Noted.")
    answer = answer_to(messages=first)
    prompt = answer.usage.prompt_tokens
    second = [*first, wire.WireMessage(2, "assistant", answer.content), user_message("And?", 3)]
    emulator.answer("Yes.")
    body = wire.body_bytes(header_of(model), second, wire.turn_anchors(model, 1, 3), 1_000)
    usage = async_to_sync(provider.complete)(model, body).usage
    assert usage
    assert usage.cache_read_tokens == prompt
    assert usage.cache_write_5m_tokens > 0


# Errors


def status_fault(emulator, status, **settings):
    emulator.fault("status", status=status, **settings)


@pytest.mark.parametrize(
    ("status", "rule"), [(429, "rate_limit"), (500, "server"), (529, "overloaded"), (503, "server")]
)
def test_a_busy_or_broken_server_is_transient(emulator, status, rule):
    status_fault(emulator, status)
    failure = failure_of()
    assert (failure.kind, failure.rule, failure.status) == (ErrorKind.TRANSIENT, rule, status)
    assert failure.sentence
    assert failure.request_id.startswith("req_")


def test_retry_after_is_told(emulator):
    status_fault(emulator, 429, headers={"retry-after": "7"})
    assert failure_of().retry_after == 7


def test_an_error_event_in_the_stream_is_told_by_its_type(emulator):
    emulator.answer(text("Hello world", pieces=["Hel", "lo"]))
    emulator.fault("error_event", after_deltas=1)
    failure = failure_of()
    assert failure.kind is ErrorKind.TRANSIENT
    assert failure.rule == "overloaded"


def test_a_dropped_connection_is_transient(emulator):
    emulator.answer(text("Hello world", pieces=["Hel", "lo"]))
    emulator.fault("drop", after_deltas=1)
    failure = failure_of()
    assert (failure.kind, failure.rule) == (ErrorKind.TRANSIENT, "dropped")


def test_a_stall_ends_after_the_time_that_is_set(emulator, settings):
    settings.MODEL_STALL_SECONDS = 0.2
    emulator.answer(text("Hello world", pieces=["Hel", "lo"]))
    emulator.fault("stall", after_deltas=1)
    failure = failure_of()
    assert (failure.kind, failure.rule) == (ErrorKind.TRANSIENT, "stall")


def test_a_stream_without_message_stop_is_transient(emulator):
    emulator.answer("Hello")
    emulator.fault("end_without_stop")
    failure = failure_of()
    assert (failure.kind, failure.rule) == (ErrorKind.TRANSIENT, "truncated")


def test_a_cut_inside_tool_json_drops_the_call_and_names_it(emulator):
    emulator.answer(text("First this."), tool_use("clock", {"zone": "Europe/Berlin"}, call_id="t_1"))
    emulator.fault("cut_tool_json")
    answer = answer_to()
    assert answer.stop_reason == "max_tokens"
    assert answer.cut_tool_calls == {"t_1": "clock"}
    assert answer.bad_tool_calls == {}
    assert [block["type"] for block in answer.blocks] == ["text"]


def test_a_full_context_is_told_with_its_figures(emulator):
    emulator.register_model("emulator-main", context_window_tokens=2_000, max_output_tokens=1_000)
    failure = failure_of(messages=[user_message("word " * 5_000)])
    assert failure.kind is ErrorKind.CONTEXT_FULL
    assert failure.figures.window == 2_000
    assert failure.figures.input > 2_000
    assert "prompt is too long" in failure.detail


def test_an_output_limit_that_is_too_high_is_no_full_context(emulator):
    failure = failure_of(max_tokens=99_999)
    assert failure.kind is ErrorKind.OUTPUT_CAP
    assert failure.figures.output_limit == 16_384


def test_an_edited_thinking_block_is_a_thinking_error(emulator):
    emulator.answer(thinking("Hmm."), tool_use("clock", {}, call_id="t_1"))
    content = answer_to(thinking=ADAPTIVE).content.replace("Hmm.", "")
    result = wire.canonical([{"type": "tool_result", "tool_use_id": "t_1", "content": "12"}])
    messages = [user_message(), wire.WireMessage(2, "assistant", content), wire.WireMessage(3, "user", result)]
    failure = failure_of(messages=messages, thinking=ADAPTIVE)
    assert failure.is_thinking_error
    assert failure.kind is ErrorKind.UNKNOWN


def test_a_server_that_is_not_there_is_transient(emulator, settings):
    settings.EMULATOR_URL = "http://127.0.0.1:9"
    failure = failure_of()
    assert (failure.kind, failure.rule) == (ErrorKind.TRANSIENT, "unreachable")


def test_no_configured_address_is_a_credential_error(settings):
    settings.EMULATOR_URL = ""
    assert failure_of().kind is ErrorKind.CREDENTIAL


def test_a_key_in_an_error_is_not_kept(emulator):
    body = {"error": {"type": "authentication_error", "message": "invalid x-api-key sk-ant-abc123456789"}}
    status_fault(emulator, 401, body=json.dumps(body))
    failure = failure_of()
    assert failure.kind is ErrorKind.CREDENTIAL
    assert "sk-ant" not in failure.detail


def test_a_cancelled_request_ends_at_the_server_at_once(emulator):
    emulator.answer("Hello", hold="wait")
    model = catalog.get("emulator-main")

    async def scenario():
        task = asyncio.create_task(provider.complete(model, body_of(model)))
        await asyncio.to_thread(emulator.wait_for_held)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(emulator.wait_for_requests, 1)

    async_to_sync(scenario)()
    assert emulator.last_request()["outcome"] == "cancelled"


def test_one_connection_serves_one_request_after_another(emulator):
    model = catalog.get("emulator-main")
    emulator.answer("Hello", times=3)

    async def scenario():
        for _index in range(3):
            await provider.complete(model, body_of(model))
        client, _keeper = provider._clients[asyncio.get_running_loop()][(model.base_url, model.api_key)]
        transport: Any = client._client._transport
        return len(transport._pool.connections)

    assert async_to_sync(scenario)() == 1


# Counting


def count(model=None):
    model = model or catalog.get("emulator-main")
    return async_to_sync(provider.count_tokens)(model, wire.count_body(header_of(model), [user_message()]))


def test_tokens_are_counted_where_the_provider_offers_it(emulator):
    emulator.answer("ok")
    assert count() == answer_to().usage.prompt_tokens


def test_no_count_comes_from_a_provider_without_the_endpoint(emulator):
    assert count(replace(catalog.get("emulator-main"), wire_id="no-such-model")) is None
    assert count(replace(catalog.get("emulator-main"), counts_tokens=False)) is None
    assert len(emulator.requests()) == 1


def test_tools_survive_the_trip(emulator):
    emulator.answer("ok")
    answer_to()
    assert json.loads(emulator.last_request()["body"])["tools"] == [CLOCK_TOOL]
