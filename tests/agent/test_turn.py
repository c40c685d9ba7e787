"""One turn, through the real SDK to the emulator."""

import asyncio
import json

import pytest
from asgiref.sync import async_to_sync

from agent.models import InboxItem, TaskFrame, ToolCall, TurnEvent
from agent.registry import ToolContext, ToolOutput, tool, unregister
from llm.emulator.client import raw_tool_use, text, tool_use
from llm.models import ModelCall
from tests.agent.world import running_world
from threads.models import Message
from threads.signals import SettledReason, thread_settled, user_spoke
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)


def play(emulator, scenario):
    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


def test_words_become_a_row_and_get_a_streamed_answer(emulator, alice):
    emulator.answer(text("Good morning."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        return thread, await world.ask(thread, "Hello there")

    thread, rows = play(emulator, scenario)
    assert [(row.role, row.text) for row in rows] == [("user", "Hello there"), ("assistant", "Good morning.")]
    assert json.loads(rows[1].wire) == [{"type": "text", "text": "Good morning."}]
    thread.refresh_from_db()
    assert thread.title == "Hello there"
    assert thread.state == "idle"
    frame = TaskFrame.objects.get()
    assert (frame.state, frame.end_reason, frame.steps) == ("done", "answered", 1)
    call = ModelCall.objects.get()
    assert (call.outcome, call.answer_message_id, call.last_message_id) == ("complete", rows[1].pk, rows[0].pk)
    numbers = list(TurnEvent.objects.order_by("number").values_list("number", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_round_of_tools_is_stored_and_sent_back(emulator, alice, echo_tool):
    emulator.answer(text("Looking."), tool_use("echo", {"words": "one"}), tool_use("echo", {"words": "two"}))
    emulator.answer(text("Both came back."))

    async def scenario(world):
        return await world.ask(await world.new_thread(alice), "Use the tool twice")

    rows = play(emulator, scenario)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "tool", "assistant"]
    assert {rows[2].text, rows[3].text} == {"one", "two"}
    assert [call.status for call in ToolCall.objects.order_by("id")] == ["done", "done"]
    sent = emulator.bodies()[1]["messages"]
    assert [block["type"] for block in sent[-1]["content"]] == ["tool_result", "tool_result"]


def test_a_tool_whose_arguments_are_wrong_gets_a_sentence_and_the_turn_goes_on(emulator, alice, echo_tool):
    emulator.answer(tool_use("echo", {"words": 7}), raw_tool_use("echo", ['{"words": ', "oops}"]), tool_use("nope"))
    emulator.answer(text("I see."))

    async def scenario(world):
        return await world.ask(await world.new_thread(alice), "Use it wrongly")

    rows = play(emulator, scenario)
    results = [row for row in rows if row.role == "tool"]
    assert len(results) == 3
    assert all(row.is_error for row in results)
    assert rows[-1].text == "I see."
    assert {call.status for call in ToolCall.objects.all()} == {"failed", "refused"}


def test_words_during_a_turn_wait_for_its_next_safe_point(emulator, alice, echo_tool):
    emulator.answer(tool_use("echo", {"words": "one"}), hold="first")
    emulator.answer(text("Done, and I saw your second message."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "First")
        await world.held()
        await world.say(thread, "Second")
        emulator.release("first")
        await world.rest(thread)
        return await world.rows(thread)

    rows = play(emulator, scenario)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "user", "assistant"]
    assert TaskFrame.objects.count() == 1


def test_words_that_come_with_the_last_answer_get_one_of_their_own(emulator, alice):
    emulator.answer(text("First answer."), hold="first")
    emulator.answer(text("Second answer."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "First")
        await world.held()
        await world.say(thread, "Second")
        emulator.release("first")
        await world.rest(thread)
        return await world.rows(thread)

    rows = play(emulator, scenario)
    assert [row.text for row in rows] == ["First", "First answer.", "Second", "Second answer."]


def test_a_repeated_send_is_the_same_send(emulator, alice):
    emulator.answer(text("Once."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        first = await world.say(thread, "Say it once", key="k1")
        again = await world.say(thread, "Say it once", key="k1")
        await world.rest(thread)
        later = await world.say(thread, "Say it once", key="k1")
        await world.rest(thread)
        return first.pk, again.pk, later.pk, await world.rows(thread)

    first, again, later, rows = play(emulator, scenario)
    assert first == again == later
    assert [row.role for row in rows] == ["user", "assistant"]


def test_stop_aborts_at_once_and_keeps_what_was_received(emulator, alice):
    emulator.fault("stall", after_deltas=3, name="stalled")
    emulator.answer(text("one two three four five six", pieces=["one ", "two ", "three ", "four ", "five ", "six"]))
    emulator.answer(text("Next."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "Count")
        await world.held()
        frame = await world.running_frame(thread)
        await world.until(lambda: TurnEvent.objects.filter(kind="delta").exists())
        await world.stop(thread, frame)
        await world.rest(thread)
        stopped = await world.rows(thread)
        return stopped, await world.ask(thread, "And now?")

    stopped, rows = play(emulator, scenario)
    answer = stopped[1]
    assert answer.text.startswith("one two")
    assert json.loads(answer.wire)[0]["text"] == answer.text
    assert answer.meta["state"] == "interrupted"
    assert stopped[2].meta["notice"] == "stopped"
    assert not stopped[2].model_visible
    assert TaskFrame.objects.order_by("id").first().end_reason == "stopped"
    assert ModelCall.objects.order_by("id").first().outcome == "interrupted"
    assert rows[-1].text == "Next."


def test_a_question_card_waits_without_a_lease_and_its_answer_is_the_tool_result(emulator, alice):
    emulator.answer(tool_use("ask_user_question", {"question": "Tea or coffee?", "options": ["Tea", "Coffee"]}))
    emulator.answer(text("Tea it is."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        waiting = await world.ask(thread, "Make me something")
        thread = await world.rest(thread)
        assert (thread.state, thread.lease_token) == ("waiting", None)
        call = await world.until(lambda: ToolCall.objects.filter(status="waiting").first())
        await world.answer(thread, call, "Tea")
        await world.rest(thread)
        return waiting, await world.rows(thread)

    waiting, rows = play(emulator, scenario)
    assert [row.role for row in waiting] == ["user", "assistant"]
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert rows[2].text == "Tea"
    assert TaskFrame.objects.count() == 1


def test_typed_words_answer_an_open_card(emulator, alice):
    emulator.answer(tool_use("ask_user_question", {"question": "Which?"}))
    emulator.answer(text("Fine."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "Ask me")
        return await world.ask(thread, "The blue one")

    rows = play(emulator, scenario)
    assert [(row.role, row.text) for row in rows[2:]] == [("tool", "The blue one"), ("assistant", "Fine.")]


def test_a_card_answered_while_the_rest_of_its_round_runs_lets_the_turn_go_on(emulator, alice):
    started, release = asyncio.Event(), asyncio.Event()

    @tool(name="slow", description="Takes its time.", parameters={"type": "object"})
    async def slow(_context: ToolContext, _arguments: dict) -> ToolOutput:
        started.set()
        await release.wait()
        return ToolOutput("done at last")

    emulator.answer(tool_use("ask_user_question", {"question": "Tea?"}), tool_use("slow", {}))
    emulator.answer(text("Tea it is."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "Make me something")
        await started.wait()
        call = await world.until(lambda: ToolCall.objects.filter(status="waiting").first())
        await world.answer(thread, call, "Yes")
        release.set()
        await world.rest(thread)
        return await world.rows(thread)

    try:
        rows = play(emulator, scenario)
    finally:
        unregister("slow")
    assert [row.role for row in rows] == ["user", "assistant", "tool", "tool", "assistant"]
    assert rows[2].text == "Yes"
    assert rows[-1].text == "Tea it is."
    assert TaskFrame.objects.get().state == "done"


def test_a_stopped_call_keeps_what_its_provider_counted_so_far(emulator, alice):
    emulator.fault("stall", after_deltas=2, name="stalled")
    emulator.answer(text("one two three", pieces=["one ", "two ", "three"]))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "Count")
        await world.held()
        frame = await world.running_frame(thread)
        await world.until(lambda: TurnEvent.objects.filter(kind="delta").exists())
        await world.stop(thread, frame)
        await world.rest(thread)

    play(emulator, scenario)
    call = ModelCall.objects.get()
    usage = emulator.requests(path="/v1/messages")[0]["usage"]
    assert call.outcome == "interrupted"
    assert call.input_tokens == usage["input_tokens"]
    assert call.first_token_ms is not None


def test_the_model_is_told_of_the_step_limit_and_runs_no_tool_after_it(emulator, alice, echo_tool, settings):
    settings.STEP_LIMIT = 2
    emulator.answer(tool_use("echo", {"words": "1"}))
    emulator.answer(text("Out of steps."), tool_use("echo", {"words": "2"}))

    async def scenario(world):
        return await world.ask(await world.new_thread(alice), "Loop for ever")

    rows = play(emulator, scenario)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "event", "assistant", "tool"]
    assert "step limit" in rows[3].text
    assert rows[5].is_error
    assert len(emulator.bodies()) == 2
    assert TaskFrame.objects.get().state == "done"


def test_a_task_works_apart_and_its_result_arrives_in_the_thread_that_asked(emulator, alice):
    emulator.answer(
        tool_use("dispatch_task", {"title": "Sums", "instructions": "Add 2 and 3"}),
        match={"contains": "Please delegate"},
    )
    emulator.answer(text("5"), match={"any_contains": "Add 2 and 3", "contains": "Add 2 and 3"})
    emulator.answer(text("Started."), match={"contains": "Task started"})
    emulator.answer(text("The task says 5."), match={"contains": "Its result"})

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "Please delegate this")
        await world.until(lambda: Message.objects.filter(thread=thread, text="The task says 5.").exists())
        await world.rest(thread)
        return thread, await world.rows(thread)

    thread, rows = play(emulator, scenario)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant", "event", "assistant"]
    assert "5" in rows[4].text
    task = thread.children.get()
    assert (task.kind, task.owner_id) == ("task", alice.pk)
    assert InboxItem.objects.filter(thread=thread, source=f"task/{task.channel}").count() == 1


def test_signals_say_that_the_user_spoke_and_that_the_thread_came_to_rest(emulator, alice):
    emulator.answer(text("Hi."))
    heard = []

    def on_spoke(thread, **_kwargs):
        heard.append(("spoke", thread))

    def on_settled(thread, reason, **_kwargs):
        heard.append((reason, thread))

    user_spoke.connect(on_spoke)
    thread_settled.connect(on_settled)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "Hello")
        return thread

    try:
        thread = play(emulator, scenario)
    finally:
        user_spoke.disconnect(on_spoke)
        thread_settled.disconnect(on_settled)
    assert heard == [("spoke", thread.pk), (SettledReason.TURN_BOUNDARY, thread.pk)]


def test_every_turn_call_of_a_conversation_is_proved(emulator, alice, echo_tool):
    for number in range(3):
        emulator.answer(
            tool_use("echo", {"words": f'{number} 你好 😀 \\ " %', "n": 1.50, "deep": {"a": [1, {"b": None}]}})
        )
        emulator.answer(text(f"Answer {number}"))

    async def scenario(world):
        thread = await world.new_thread(alice)
        for number in range(3):
            await world.ask(thread, f"Question {number}\x00 with a NUL")
        return thread

    thread = play(emulator, scenario)
    report = verify_thread(thread)
    assert (report.calls, report.proved) == (6, 6)
