"""An answer put together from events, for what a server of the Messages API does only rarely."""

import json

import pytest

from llm.assembly import Assembly, parse_input
from llm.errors import ErrorKind, ModelError
from llm.events import TextDelta
from llm.prices import Usage

STOP = {"type": "message_stop"}


def start(index, block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, **fields):
    return {"type": "content_block_delta", "index": index, "delta": fields}


def ended(reason, **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def assembled(*events):
    assembly = Assembly("req_1")
    shown = [item for event in events for item in assembly.take(event)]
    return assembly.answer(), shown


def test_a_surrogate_pair_torn_between_deltas_is_one_sign():
    answer, shown = assembled(
        start(0, {"type": "text", "text": ""}),
        delta(0, type="text_delta", text="a\ud83d"),
        delta(0, type="text_delta", text="\ude00b"),
        ended("end_turn"),
        STOP,
    )
    assert answer.text == "a😀b"
    assert "".join(event.text for event in shown if isinstance(event, TextDelta)) == "a😀b"


def test_half_a_pair_at_the_end_is_spelled_out():
    answer, _shown = assembled(
        start(0, {"type": "text", "text": ""}),
        delta(0, type="text_delta", text="a\ud83d"),
        ended("end_turn"),
        STOP,
    )
    assert answer.text == "a\\ud83d"


def test_thinking_that_could_not_come_back_unchanged_is_left_out():
    answer, _shown = assembled(
        start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, type="thinking_delta", thinking="a\x00"),
        delta(0, type="signature_delta", signature="sig"),
        start(1, {"type": "text", "text": "Yes."}),
        ended("end_turn"),
        STOP,
    )
    assert [block["type"] for block in answer.blocks] == ["text"]
    assert answer.thinking == "a␀"


def test_a_signature_without_shown_thinking_is_kept():
    answer, _shown = assembled(
        start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        delta(0, type="signature_delta", signature="sig"),
        start(1, {"type": "text", "text": "Yes."}),
        ended("end_turn"),
        STOP,
    )
    assert answer.blocks[0] == {"type": "thinking", "thinking": "", "signature": "sig"}
    assert answer.thinking == ""


def test_an_unknown_block_is_kept_as_received_and_unknown_events_are_passed_over():
    answer, _shown = assembled(
        {"type": "something_new"},
        start(0, {"type": "novel", "z": 1.5, "a": [1]}),
        delta(0, type="novel_delta", more=1),
        ended("end_turn"),
        STOP,
    )
    assert answer.content == '[{"type":"novel","z":1.5,"a":[1]}]'


def test_usage_of_later_events_goes_over_earlier():
    answer, _shown = assembled(
        {
            "type": "message_start",
            "message": {
                "usage": {
                    "input_tokens": 5,
                    "cache_creation_input_tokens": 7,
                    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
                    "output_tokens": 1,
                }
            },
        },
        start(0, {"type": "text", "text": "x"}),
        ended("end_turn", output_tokens=9, input_tokens=None),
        STOP,
    )
    assert answer.usage == Usage(5, 9, 0, 3, 4)


def test_a_server_that_tells_no_usage_has_none():
    answer, _shown = assembled(start(0, {"type": "text", "text": "x"}), STOP)
    assert answer.usage is None
    assert answer.stop_reason == "end_turn"


def test_a_stream_without_message_stop_has_no_answer():
    with pytest.raises(ModelError) as failed:
        assembled(start(0, {"type": "text", "text": "x"}), ended("end_turn"))
    assert failed.value.kind is ErrorKind.TRANSIENT


@pytest.mark.parametrize(
    "ending",
    [ended("model_context_window_exceeded"), ended("max_tokens", input_tokens=900, output_tokens=0)],
)
def test_an_empty_answer_of_a_full_window_is_a_full_context(ending):
    with pytest.raises(ModelError) as failed:
        assembled(ending, STOP)
    assert failed.value.kind is ErrorKind.CONTEXT_FULL


def test_an_answer_that_reached_the_window_is_an_answer():
    answer, _shown = assembled(
        start(0, {"type": "text", "text": "x"}), ended("model_context_window_exceeded", output_tokens=1), STOP
    )
    assert answer.text == "x"
    assert answer.stop_reason == "model_context_window_exceeded"


def test_a_call_cut_off_before_its_first_character_is_cut():
    answer, _shown = assembled(
        start(0, {"type": "tool_use", "id": "t_1", "name": "clock", "input": {}}), ended("max_tokens"), STOP
    )
    assert answer.content == "[]"
    assert answer.cut_tool_calls == {"t_1": "clock"}


def test_a_call_that_was_whole_before_the_cut_is_kept():
    answer, _shown = assembled(
        start(0, {"type": "tool_use", "id": "t_1", "name": "clock", "input": {}}),
        delta(0, type="input_json_delta", partial_json='{"a":1}'),
        ended("max_tokens"),
        STOP,
    )
    assert answer.blocks[0]["input"] == {"a": 1}
    assert answer.cut_tool_calls == {}


def test_an_input_nested_too_deep_is_malformed():
    for levels in (101, 700, 100_000):
        raw = '{"a":' + "[" * levels + "]" * levels + "}"
        value, problem = parse_input(raw)
        assert value == {"_malformed": raw}
        assert problem
    assert parse_input('{"a":' + "[" * 99 + "]" * 99 + "}")[1] == ""


def test_a_large_whole_number_and_deep_keys_survive():
    raw = '{"n": 123456789012345678901234567890, "a": {"b": {"c": [1, 2.0, "é"]}}}'
    value, problem = parse_input(raw)
    assert problem == ""
    assert value == json.loads(raw)
