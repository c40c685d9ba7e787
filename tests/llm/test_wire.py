"""The one serialisation of requests, to the byte."""

import json
from dataclasses import replace

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from llm import catalog, wire
from llm.models import RequestHeader
from llm.wire import Anchor, WireMessage

TOOLS = [{"name": "b", "input_schema": {"type": "object"}}, {"name": "a", "input_schema": {"x": 1.5}}]
ONE = WireMessage(0, "user", '[{"type":"text","text":"opening"}]')
TWO = WireMessage(7, "assistant", '[{"type":"thinking","thinking":"","signature":"s"},{"type":"text","text":"y"}]')
THREE = WireMessage(9, "user", '[{"type":"tool_result","tool_use_id":"t","content":"a"},{"type":"text","text":"z"}]')
FOUR = WireMessage(11, "assistant", '[{"type":"thinking","thinking":"x","signature":"s"}]')

# What a record can hold: text is made visible before it gets here.
storable = st.characters(exclude_categories=["Cs"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=storable),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)  # fmt: skip
blocks = st.lists(st.dictionaries(st.text(max_size=5), json_values, min_size=1, max_size=4), max_size=5)


def model(**changes):
    return replace(catalog.get("emulator-main"), **changes)


def header(**changes):
    return wire.header_text(**{"model": model(), "tools": TOOLS, "system": "Be brief.", **changes})


def test_a_header_is_written_in_one_order_and_leaves_out_what_is_empty():
    assert header(thinking={"type": "adaptive"}, effort="high", tool_choice={"type": "auto"}, betas=["x", "y"]) == (
        '{"model":"emulator-main",'
        '"tools":[{"name":"b","input_schema":{"type":"object"}},{"name":"a","input_schema":{"x":1.5}}],'
        '"system":[{"type":"text","text":"Be brief."}],"thinking":{"type":"adaptive"},'
        '"output_config":{"effort":"high"},"tool_choice":{"type":"auto"},"betas":["x","y"]}'
    )
    assert wire.header_text(model=model(), tools=[], system=" ") == '{"model":"emulator-main"}'


def test_what_a_header_cannot_encode_is_made_visible():
    text = header(system="a\ud800", tools=[{"name": "a", "description": "\ud800"}])
    assert text.encode()
    assert "\\\\ud800" in text


def test_a_body_has_its_keys_in_one_order_and_its_anchors_inside_the_last_blocks():
    anchors = [Anchor("system", "1h"), Anchor(0, "5m"), Anchor(9, "5m")]
    assert wire.body_bytes(header(betas=["x"]), [ONE, TWO, THREE], anchors, 1_000).decode() == (
        '{"model":"emulator-main","max_tokens":1000,"stream":true,'
        '"tools":[{"name":"b","input_schema":{"type":"object"}},{"name":"a","input_schema":{"x":1.5}}],'
        '"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],'
        '"messages":[{"role":"user","content":[{"type":"text","text":"opening",'
        '"cache_control":{"type":"ephemeral","ttl":"5m"}}]},'
        f'{{"role":"assistant","content":{TWO.content}}},'
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"},'
        '{"type":"text","text":"z","cache_control":{"type":"ephemeral","ttl":"5m"}}]}]}'
    )


def test_without_stream_the_key_is_left_out():
    assert b"stream" not in wire.body_bytes(header(), [ONE], [], 5, stream=False)


@settings(max_examples=40)
@given(st.lists(blocks, min_size=1, max_size=4), json_values)
def test_a_body_is_the_messages_it_was_given(contents, choice):
    messages = [WireMessage(number, "user", wire.canonical(content)) for number, content in enumerate(contents)]
    text = header(tool_choice={"v": choice})
    body = json.loads(wire.body_bytes(text, messages, [], 5))
    assert body["messages"] == [{"role": "user", "content": content} for content in contents]
    assert body["tool_choice"] == {"v": choice}
    assert wire.canonical(json.loads(text)) == text


@settings(max_examples=40)
@given(blocks)
def test_blocks_are_cut_out_byte_for_byte(content):
    text = wire.canonical(content)
    assert wire.split_blocks(text) == [wire.canonical(block) for block in content]


@settings(max_examples=40)
@given(blocks)
def test_an_anchor_adds_its_mark_and_nothing_else(content):
    if not content or content[-1].get("type") in wire.THINKING_TYPES:
        return
    message = WireMessage(3, "user", wire.canonical(content))
    marked = wire.body_bytes(header(), [message], [Anchor(3, "5m")], 5).decode()
    mark = ',"cache_control":{"type":"ephemeral","ttl":"5m"}'
    assert marked.count(mark) == 1
    assert marked.replace(mark, "") == wire.body_bytes(header(), [message], [], 5).decode()


def test_more_than_four_anchors_are_refused():
    messages = [ONE._replace(last_id=number) for number in range(5)]
    anchors = [Anchor(number, "5m") for number in range(5)]
    wire.body_bytes(header(), messages, anchors[:4], 5)
    with pytest.raises(ValueError, match="5 anchors"):
        wire.body_bytes(header(), messages, anchors, 5)


@pytest.mark.parametrize("at", [3, 11, "system"])
def test_an_anchor_needs_a_message_that_can_carry_it(at):
    text = wire.header_text(model=model(), tools=[], system="")
    with pytest.raises(ValueError, match="anchor"):
        wire.body_bytes(text, [ONE, TWO, FOUR], [Anchor(at, "5m")], 5)


def test_two_anchors_at_one_place_are_refused():
    with pytest.raises(ValueError, match="one place"):
        wire.body_bytes(header(), [ONE], [Anchor(0, "5m"), Anchor(0, "1h")], 5)


def test_a_turn_anchors_system_the_previous_last_message_and_its_own():
    lifetimes = {"system_lifetime": "1h", "message_lifetime": "5m"}
    assert wire.turn_anchors(model(**lifetimes), 7, 9) == [
        Anchor("system", "1h"),
        Anchor(7, "5m"),
        Anchor(9, "5m"),
    ]
    assert wire.turn_anchors(model(), None, 9) == wire.turn_anchors(model(), 9, 9)
    assert len(wire.turn_anchors(model(), None, 9)) == 2


def test_anchors_are_stored_and_read_back():
    anchors = [Anchor("system", "1h"), Anchor(0, "5m")]
    assert wire.anchors_from_json(json.loads(json.dumps(wire.anchors_to_json(anchors)))) == anchors


def test_thinking_goes_and_every_other_block_stays_byte_identical():
    content = (
        '[{"type":"redacted_thinking","data":"d"},{"type":"text","text":"\\"thinking\\" 1.50"},{"z":1,"type":"x"}]'
    )
    assert wire.without_thinking(content) == '[{"type":"text","text":"\\"thinking\\" 1.50"},{"z":1,"type":"x"}]'
    assert wire.without_thinking(FOUR.content) is None
    assert wire.without_thinking("[]") is None
    assert wire.without_thinking(ONE.content) is ONE.content


def test_betas_travel_outside_the_body():
    text = header(betas=["x", "y"])
    assert wire.betas_of(text) == ("x", "y")
    assert b"betas" not in wire.body_bytes(text, [ONE], [], 5)
    assert wire.betas_of(header()) == ()


def test_a_count_asks_with_the_same_header_and_messages_and_no_limit():
    body = json.loads(wire.count_body(header(betas=["x"]), [ONE, TWO]))
    assert list(body) == ["model", "tools", "system", "messages"]
    assert body["messages"][1]["content"] == json.loads(TWO.content)


def test_not_a_number_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        wire.canonical({"a": float("nan")})


@pytest.mark.django_db
def test_a_header_is_stored_once_under_its_digest():
    first, second = wire.remember_header(header()), wire.remember_header(header())
    assert first.pk == second.pk == wire.header_sha256(header())
    assert RequestHeader.objects.get().text == header()


@pytest.mark.django_db(transaction=True)
def test_a_known_header_costs_no_query():
    wire.remember_header(header())
    with CaptureQueriesContext(
        connection,
    ) as queries:
        wire.remember_header(header())
    assert len(queries) == 0


@pytest.mark.django_db(transaction=True)
def test_a_header_that_was_rolled_back_is_stored_again():
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        wire.remember_header(header())
        raise ZeroDivisionError
    wire.remember_header(header())
    assert RequestHeader.objects.count() == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("_again", [1, 2])
def test_a_flush_is_noticed(_again):
    wire.remember_header(header())
    assert RequestHeader.objects.count() == 1
