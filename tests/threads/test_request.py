"""Which rows a request holds, and what of them."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from llm.wire import canonical
from tests.threads.records import call_tool, exchange, give_result, live, say, thread_of
from threads.models import Message
from threads.request import Row, rows_of_call, wire_messages

THINKING = '{"type":"thinking","thinking":"hm","signature":"c2ln"}'
TEXT = '{"type":"text","text":"so"}'
LATEST = 2**62


def ids(thread, last=LATEST, cut=0):
    return [row.id for row in rows_of_call(live(thread).pk, last, cut)]


@pytest.mark.django_db
def test_a_row_is_in_a_call_of_its_generation_when_visible_sent_and_not_later(alice):
    thread = thread_of(alice)
    first, second = exchange(thread)
    say(thread, Message.Role.EVENT, "hidden", model_visible=False)
    say(thread, Message.Role.ASSISTANT, "", wire=None)
    third = say(thread, Message.Role.EVENT, "event")
    exchange(thread_of(alice))
    assert ids(thread) == [first.pk, second.pk, third.pk]
    assert ids(thread, last=second.pk) == [first.pk, second.pk]


@pytest.mark.django_db
def test_a_row_that_left_is_in_the_calls_before_its_cut_alone(alice):
    thread = thread_of(alice)
    first, second = exchange(thread)
    Message.objects.filter(pk=first.pk).update(left_at_cut=2, left_because="cold")
    assert ids(thread, cut=1) == [first.pk, second.pk]
    assert ids(thread, cut=2) == [second.pk]
    assert ids(thread, cut=3) == [second.pk]


@pytest.mark.django_db
def test_rows_come_in_one_query(alice):
    thread = thread_of(alice)
    exchange(thread)
    generation = live(thread)
    with CaptureQueriesContext(connection) as queries:
        rows_of_call(generation.pk, LATEST, 0)
    assert len(queries) == 1


def test_the_opening_comes_first_as_message_zero():
    messages = wire_messages(f"[{TEXT}]", [Row(7, "user", f"[{TEXT}]", "")], model_name="m", thinking_from=0)
    assert [(message.last_id, message.role) for message in messages] == [(0, "user"), (7, "user")]
    assert wire_messages(None, [], model_name="m", thinking_from=0) == []


def test_results_of_one_round_join_and_other_rows_do_not():
    rows = [
        Row(1, "user", '[{"type":"text","text":"go"}]', ""),
        Row(2, "assistant", f"[{TEXT}]", "m"),
        Row(3, "tool", '[{"type":"tool_result","tool_use_id":"a","content":"1"}]', ""),
        Row(4, "tool", '[{"type":"tool_result","tool_use_id":"b","content":[]}]', ""),
        Row(5, "event", f"[{TEXT}]", ""),
        Row(6, "user", f"[{TEXT}]", ""),
        Row(7, "assistant", f"[{TEXT}]", "m"),
        Row(8, "tool", '[{"type":"tool_result","tool_use_id":"c","content":"3"}]', ""),
    ]
    messages = wire_messages(None, rows, model_name="m", thinking_from=0)
    assert [(message.last_id, message.role) for message in messages] == [
        (1, "user"),
        (2, "assistant"),
        (4, "user"),
        (5, "user"),
        (6, "user"),
        (7, "assistant"),
        (8, "user"),
    ]
    assert messages[2].content == (
        '[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[]}]'
    )


def test_thinking_is_kept_of_the_models_own_rows_from_the_threshold_on():
    wire = f"[{THINKING},{TEXT}]"
    rows = [Row(1, "assistant", wire, "m"), Row(2, "assistant", wire, "other"), Row(3, "assistant", wire, "m")]
    contents = [message.content for message in wire_messages(None, rows, model_name="m", thinking_from=2)]
    assert contents == [f"[{TEXT}]", f"[{TEXT}]", wire]


def test_a_row_of_nothing_but_dropped_thinking_is_left_out():
    rows = [Row(1, "user", f"[{TEXT}]", ""), Row(2, "assistant", f"[{THINKING}]", "m")]
    assert [message.last_id for message in wire_messages(None, rows, model_name="m", thinking_from=3)] == [1]
    assert [message.last_id for message in wire_messages(None, rows, model_name="m", thinking_from=2)] == [1, 2]


def test_words_about_thinking_change_nothing():
    wire = canonical([{"type": "text", "text": 'a "thinking" block: {"type":"thinking"}'}])
    [message] = wire_messages(None, [Row(1, "assistant", wire, "other")], model_name="m", thinking_from=0)
    assert message.content == wire


@pytest.mark.django_db
def test_stored_rounds_become_the_messages_that_the_api_takes(alice):
    thread = thread_of(alice)
    say(thread, Message.Role.USER, "look")
    call_tool(thread)
    give_result(thread)
    say(thread, Message.Role.ASSISTANT, "seen", model="emulator-main")
    messages = wire_messages(None, rows_of_call(live(thread).pk, LATEST, 0), model_name="x", thinking_from=0)
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant"]
