"""Faults of a provider: shown to the user in a sentence, recorded in the ledger, and never part of a prompt."""

import json

import pytest
from asgiref.sync import async_to_sync

from agent.models import TaskFrame, ToolCall
from llm.emulator.client import raw_tool_use, text, thinking, tool_use
from llm.models import ModelCall
from tests.agent.world import running_world
from threads.models import Message
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)

REFUSED_THINKING = "messages.1.content.0: Invalid `signature` in `thinking` block"

FAULTS = {
    "429": {"kind": "status", "status": 429, "headers": {"retry-after": "0"}},
    "500": {"kind": "status", "status": 500},
    "529": {"kind": "status", "status": 529},
    "error event": {"kind": "error_event", "after_deltas": 2},
    "drop": {"kind": "drop", "after_deltas": 2},
    "stall": {"kind": "stall", "after_deltas": 2, "seconds": 30},
    "no message_stop": {"kind": "end_without_stop", "after_deltas": 2},
    "cut inside tool JSON": {"kind": "cut_tool_json"},
}
# The limit that cut it off would cut it off again.
NOT_RETRIED = {"cut inside tool JSON"}
BROKE = "The connection to the model broke before its answer was complete. Try again."
OVERLOADED_SENTENCE = "The model is overloaded just now. Try again in a minute."
SAID = {
    "429": "The model is receiving too many requests just now. Try again in a minute.",
    "500": "The model's server has a problem of its own just now. Try again in a minute.",
    "529": OVERLOADED_SENTENCE,
    "error event": OVERLOADED_SENTENCE,
    "drop": BROKE,
    "stall": "The model stopped sending in the middle. Try again.",
    "no message_stop": BROKE,
    "cut inside tool JSON": (
        "The model's output limit cut the answer off inside a tool call, so nothing of it was run and the model does "
        "not see it again. Ask for smaller steps."
    ),
}


def talk(emulator, alice, *words):
    async def scenario():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            for said in words:
                await world.ask(thread, said)
            return await world.rows(thread)

    return async_to_sync(scenario)()


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - NOT_RETRIED))
def test_a_passing_fault_is_retried_and_leaves_no_trace_in_the_answer(emulator, alice, settings, name):
    settings.MODEL_STALL_SECONDS = 1
    emulator.fault(times=1, **FAULTS[name])
    emulator.answer(text("one two three four"), times=2)
    rows = talk(emulator, alice, "Hello")
    assert [(row.role, row.text) for row in rows] == [("user", "Hello"), ("assistant", "one two three four")]
    outcomes = list(ModelCall.objects.order_by("id").values_list("outcome", flat=True))
    assert outcomes == ["transient", "complete"]


@pytest.mark.parametrize("name", FAULTS)
def test_a_lasting_fault_ends_the_turn_with_a_sentence_and_adds_nothing_to_the_prompt(
    emulator, alice, settings, echo_tool, name
):
    settings.MODEL_RETRIES = 1
    settings.MODEL_STALL_SECONDS = 1
    attempts = 1 if name in NOT_RETRIED else 2
    emulator.fault(times=attempts, **FAULTS[name])
    emulator.answer(text("Back again."), match={"contains": "Still there?"})
    emulator.answer(text("one two three four"), tool_use("echo", {"words": "five"}), times=2)
    rows = talk(emulator, alice, "Hello", "Still there?")
    assert [row.role for row in rows] == ["user", "assistant", "event", "user", "assistant"]
    _hello, failed, notice, _still, last = rows
    assert (failed.wire, failed.meta["state"]) == (None, "interrupted")
    assert (notice.text, notice.wire, notice.model_visible) == (SAID[name], None, False)
    assert last.text == "Back again."
    assert not ToolCall.objects.exists()
    frame = TaskFrame.objects.order_by("id").first()
    assert (frame.state, frame.end_reason, frame.notice) == ("failed", "model-error", notice.text)
    outcome = "cut" if name in NOT_RETRIED else "transient"
    calls = list(ModelCall.objects.order_by("id"))
    assert [call.outcome for call in calls] == [*[outcome] * attempts, "complete"]
    assert all(call.error or call.stop_reason == "max_tokens" for call in calls[:-1])
    first, *_again, next_one = emulator.bodies()
    said = [(message["role"], [block["text"] for block in message["content"]]) for message in next_one["messages"]]
    assert said[0] == ("user", [block["text"] for block in first["messages"][0]["content"]])
    assert said[1:] == [("user", ["Hello"]), ("user", ["Still there?"])]
    report = verify_thread(last.thread)
    assert report.calls == report.proved == len(calls)


def test_calls_before_one_that_was_cut_off_are_not_run_without_it(emulator, alice, echo_tool):
    whole, cut = tool_use("echo", {"words": "whole"}), raw_tool_use("echo", ['{"words": "cu'])
    emulator.answer(text("Both at once."), whole, cut, stop_reason="max_tokens")
    emulator.answer(text("Fine."))
    rows = talk(emulator, alice, "Hello", "Go on")
    assert [row.role for row in rows] == ["user", "assistant", "event", "user", "assistant"]
    assert (rows[1].text, rows[1].wire) == ("Both at once.", None)
    assert not ToolCall.objects.exists()


def test_an_answer_that_the_output_limit_cut_off_within_its_words_goes_on_from_there(emulator, alice):
    emulator.answer(text("It began like"), stop_reason="max_tokens")
    emulator.answer(text("this."))
    rows = talk(emulator, alice, "Tell me", "Go on")
    assert (
        rows[2].text == "The answer was cut off at the model's output limit. Ask it to go on, or for a shorter answer."
    )
    assert ModelCall.objects.order_by("id").first().outcome == "cut"
    roles = [message["role"] for message in emulator.bodies()[-1]["messages"]]
    assert roles == ["user", "user", "assistant", "user"]
    assert "It began like" in json.dumps(emulator.bodies()[-1]["messages"][2])


def test_a_full_context_ends_the_turn_with_a_sentence_that_says_what_helps(emulator, alice):
    body = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 200251 tokens > 200000 maximum"},
    }
    emulator.fault("status", status=400, body=body)
    rows = talk(emulator, alice, "Hello")
    assert rows[-1].meta["notice"] == "context-full"
    assert "new conversation" in rows[-1].text
    assert TaskFrame.objects.get().end_reason == "context-full"
    assert ModelCall.objects.get().outcome == "context_full"
    assert Message.objects.filter(role="assistant").get().wire is None


def test_the_sentence_is_in_the_persons_language(emulator, alice, settings):
    settings.MODEL_RETRIES = 0
    alice.language = "zh-hans"
    alice.save()
    emulator.fault("status", status=401)
    rows = talk(emulator, alice, "你好")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in rows[-1].text)


def test_a_refused_thinking_block_is_dropped_once_and_the_turn_goes_on(emulator, alice):
    body = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": REFUSED_THINKING,
        },
    }
    emulator.answer(text("First."))
    emulator.fault("status", status=400, body=body, match={"contains": "Second"})
    emulator.answer(text("Second answer."))
    rows = talk(emulator, alice, "First", "Second")
    assert rows[-1].text == "Second answer."
    assert [row.meta["notice"] for row in rows if row.meta.get("notice")] == ["thinking-dropped"]


@pytest.mark.parametrize("demands", [True, False])
def test_dropping_keeps_the_thinking_of_an_open_round_where_the_model_demands_it(
    emulator, alice, settings, tmp_path, demands
):
    """A model that thinks with a budget refuses an open round of tools without its thinking; others do not."""
    if demands:
        catalog = tmp_path / "catalog.toml"
        catalog.write_text("[models.emulator-main]\nthinking = 1_024\n")
        settings.MAXCLAW_CATALOG = str(catalog)
        emulator.register_model("emulator-main", manual_thinking=True, strips_thinking=True, thinking_bound=False)
    emulator.answer(thinking("I think."), text("First."), match={"contains": "Hello"})
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": REFUSED_THINKING}}
    emulator.answer(
        thinking("I look."), tool_use("message_history_read", {"channel": "nowhere"}), match={"contains": "Look"}
    )
    emulator.fault("status", status=400, body=body, match={"contains": "There is no such conversation"})
    emulator.answer(text("Second."))
    rows = talk(emulator, alice, "Hello", "Look it up")
    assert rows[-1].text == "Second."
    sent = [body["messages"] for body in emulator.bodies()]
    thoughts = [
        [block["thinking"] for block in blocks_of(messages) if block["type"] == "thinking"] for messages in sent
    ]
    assert thoughts[-2] == ["I think.", "I look."]
    assert thoughts[-1] == (["I look."] if demands else [])


def blocks_of(messages):
    return [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
