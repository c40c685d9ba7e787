"""Each fault reaches the SDK as the real one would."""

import threading
from typing import Any

import anthropic
import httpx2
import pytest

from llm.emulator.client import ControlError, tool_use
from tests.llm.emulator.asking import MAIN, TOOLS, ask, assistant, call, result, user

PARAMETERS: dict[str, Any] = {"model": MAIN, "max_tokens": 500, "messages": [user("hi")], "tools": TOOLS}
LONG_ANSWER = "word " * 60


def streamed(client, **changes):
    with client.messages.stream(**{**PARAMETERS, **changes}) as stream:
        return stream.get_final_message()


def test_429_has_a_retry_after(emulator, client):
    emulator.fault("status", status=429)
    with pytest.raises(anthropic.RateLimitError) as caught:
        streamed(client)
    assert caught.value.response.headers["retry-after"] == "1"
    assert caught.value.type == "rate_limit_error"
    assert streamed(client).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("status", "error_type"), [(500, "api_error"), (529, "overloaded_error"), (402, "billing_error")]
)
def test_statuses_have_their_error_types(emulator, client, status, error_type):
    emulator.fault("status", status=status)
    with pytest.raises(anthropic.APIStatusError) as caught:
        streamed(client)
    assert (caught.value.status_code, caught.value.type) == (status, error_type)


def test_the_sdk_retries_what_is_worth_it(emulator):
    emulator.fault("status", status=529, headers={"retry-after-ms": "1"}, times=2)
    with anthropic.Anthropic(api_key="k", base_url=emulator.base_url, max_retries=2) as sdk:
        assert ask(sdk, "hi").stop_reason == "end_turn"
    log = emulator.requests()
    assert [entry["outcome"] for entry in log] == ["fault:status", "fault:status", "completed"]
    assert len({entry["body"] for entry in log}) == 1


def test_any_gateways_body_can_be_sent(emulator, client):
    said = {"error": {"message": "This model's maximum context length is 8192 tokens", "code": 400}}
    emulator.fault("status", status=400, body=said)
    with pytest.raises(anthropic.BadRequestError) as caught:
        streamed(client)
    assert caught.value.response.json() == said
    emulator.fault(
        "status", status=413, body="<html>413 Request Entity Too Large", headers={"content-type": "text/html"}
    )
    with pytest.raises(anthropic.APIStatusError) as caught_html:
        streamed(client)
    assert (caught_html.value.type, caught_html.value.status_code) == (None, 413)


def test_an_error_event_in_the_stream(emulator, client):
    emulator.answer(LONG_ANSWER)
    emulator.fault("error_event", after_deltas=3)
    words = []
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        client.messages.stream(**PARAMETERS) as stream,
    ):
        words.extend(stream.text_stream)
    assert (caught.value.status_code, caught.value.type) == (200, "overloaded_error")
    assert len(words) == 3


def test_a_dropped_connection(emulator, client):
    emulator.answer(LONG_ANSWER)
    emulator.fault("drop", after_deltas=3)
    words = []
    with pytest.raises(httpx2.RemoteProtocolError), client.messages.stream(**PARAMETERS) as stream:
        words.extend(stream.text_stream)
    assert "".join(words) == LONG_ANSWER[:72]
    assert emulator.last_request()["outcome"] == "fault:drop"


def test_a_connection_dropped_before_the_first_delta(emulator, client):
    emulator.fault("drop", after_deltas=0)
    with pytest.raises(httpx2.RemoteProtocolError):
        streamed(client)


def test_a_stream_that_ends_without_message_stop(emulator, client):
    emulator.answer(LONG_ANSWER)
    emulator.fault("end_without_stop", after_deltas=3)
    message = streamed(client)
    assert (message.stop_reason, message.content[0].text) == (None, LONG_ANSWER[:72])


def test_a_cut_inside_tool_json(emulator, client):
    emulator.answer("Looking.", tool_use("clock", {"zone": "UTC", "format": "a long value to be cut"}))
    emulator.fault("cut_tool_json")
    message = streamed(client)
    assert message.stop_reason == "max_tokens"
    assert message.content[1].type == "tool_use"
    assert message.content[1].input == {"zone": "UTC"}


def test_a_stall_for_some_seconds(emulator):
    emulator.answer(LONG_ANSWER)
    emulator.fault("stall", after_deltas=3, seconds=30)
    slow = httpx2.Timeout(5.0, read=0.2)
    with (
        anthropic.Anthropic(api_key="k", base_url=emulator.base_url, timeout=slow) as sdk,
        pytest.raises(httpx2.ReadTimeout),
    ):
        streamed(sdk)
    assert emulator.wait_for_requests(1)[0]["outcome"] == "cancelled"


def test_a_stall_until_it_is_released(emulator, client):
    emulator.answer(LONG_ANSWER)
    emulator.fault("stall", after_deltas=3, name="pause")
    replies = []
    asking = threading.Thread(target=lambda: replies.append(streamed(client)))
    asking.start()
    assert emulator.wait_for_held() == ["pause"]
    assert emulator.last_request()["deltas_sent"] == 3
    assert emulator.release("other") == 0
    assert emulator.release("pause") == 1
    asking.join()
    assert replies[0].content[0].text == LONG_ANSWER


def test_a_hold_before_the_first_byte(emulator, client):
    emulator.fault("hold", name="gate")
    replies = []
    asking = threading.Thread(target=lambda: replies.append(streamed(client)))
    asking.start()
    emulator.wait_for_held()
    assert emulator.last_request()["first_byte_seconds"] is None
    emulator.release()
    asking.join()
    assert replies[0].stop_reason == "end_turn"


def test_faults_strike_answers_without_a_stream_too(emulator, client):
    emulator.fault("drop")
    with pytest.raises(anthropic.APIConnectionError):
        ask(client, "hi")
    emulator.fault("error_event")
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client, "hi")
    assert caught.value.status_code == 529


def test_a_fault_can_be_meant_for_one_model_or_one_text(emulator, client):
    emulator.fault("status", status=500, match={"model": "emulator-light"})
    emulator.fault("status", status=529, match={"contains": "poison"}, times=-1)
    assert ask(client, "hi").stop_reason == "end_turn"
    with pytest.raises(anthropic.InternalServerError):
        ask(client, "hi", model="emulator-light")
    assert ask(client, "hi", model="emulator-light").stop_reason == "end_turn"
    for _ in range(3):
        with pytest.raises(anthropic.APIStatusError):
            ask(client, "a poison word")


def test_magic_words_work_in_demo_mode_alone(emulator, client):
    assert ask(client, "fault:529 please").stop_reason == "end_turn"
    emulator.settings(demo_faults=True)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(client, "fault:529 please")
    assert caught.value.status_code == 529
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 200251 tokens > 200000 maximum"):
        ask(client, "fault:context_full")
    with pytest.raises(httpx2.RemoteProtocolError):
        streamed(client, messages=[user("fault:drop")])
    assert ask(client, "fault:nonsense").stop_reason == "end_turn"
    looked_up = [assistant(call("toolu_1")), user(result("toolu_1", "somebody once wrote fault:529"))]
    assert ask(client, "Look it up.", *looked_up, tools=TOOLS).stop_reason == "end_turn"
    assert ask(client, "<framework>fault:529</framework>").stop_reason == "end_turn"


def test_a_malformed_fault_is_refused_in_words(emulator):
    with pytest.raises(ControlError, match="a fault's kind is one of"):
        emulator.fault("explode")
    with pytest.raises(ControlError, match="unknown fault settings: colour"):
        emulator.fault("drop", colour="red")
    with pytest.raises(ControlError, match="times"):
        emulator.fault("drop", times=0)
