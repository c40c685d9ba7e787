"""When a renewal's turn comes among the frames of a thread, and when there is nothing to renew."""

import json

import pytest
from django.db import transaction

from agent import compaction, conversations, frames, leases, renewal, speaking, summary
from agent.models import InboxItem, TaskFrame, ToolCall
from agent.prompts import RESUMED_NOTE
from agent.refusals import Refused
from llm.emulator.client import text, tool_use
from maxclaw.database_threads import in_database
from tests.agent.renewing import ASKED, LONG, generations, play, summary_text
from tests.threads.records import say
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)


def sources(thread):
    return list(TaskFrame.objects.filter(thread=thread).order_by("id").values_list("source", "state"))


def test_a_renewal_that_is_open_answers_whoever_asks_for_another(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text(summary_text(s9="- Call the plumber at noon")), match=ASKED, hold="summary")
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, LONG)
        await world.held()
        running = await world.running_frame(thread)
        assert (await in_database(renewal.request, alice, thread.channel)).pk == running.pk
        emulator.release("summary")
        await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    _first, second = generations(thread)
    assert "Call the plumber at noon" in second.opening
    assert sources(thread) == [("user", "done"), ("compaction/threshold", "done")]
    with pytest.raises(Refused) as refused:
        renewal.request(alice, thread.channel)
    assert refused.value.code == "nothing-to-renew"


def test_a_renewal_waits_until_the_turn_with_an_open_card_has_ended(emulator, alice):
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(tool_use("ask_user_question", {"question": "Colour?", "options": ["red", "blue"]}))
    emulator.answer(text("Painted."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "Paint the shed, ask me for the colour")
        waiting = await in_database(renewal.request, alice, thread.channel)
        call = await in_database(lambda: ToolCall.objects.get())
        shown = await in_database(frames.turn_view, thread)
        assert (waiting.state, shown["frame"], shown["state"]) == ("suspended", call.frame_id, "waiting")
        await world.answer(thread, call, "ULTRAMARINE")
        await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    first, second = generations(thread)
    assert first.end_reason == "manual"
    assert not Message.objects.filter(generation=second, model_visible=True).exists()
    turn = json.dumps([body["messages"] for body in emulator.bodies() if "ten numbered" not in json.dumps(body)][-1])
    assert "ULTRAMARINE" in turn
    assert "Paint the shed" in turn
    assert not Message.objects.filter(text=RESUMED_NOTE).exists()


def test_a_task_delivers_its_result_though_a_renewal_follows(emulator, alice):
    emulator.answer(text(summary_text()), match=ASKED)
    emulator.answer(text("The lake is 9 m deep."), match={"contains": "Measure the lake"}, hold="turn")
    emulator.answer(text("Noted."), times=-1)

    async def scenario(world):
        parent = await world.new_thread(alice)
        task = await world.new_thread(alice, kind="task", parent=parent, title="Survey")
        await world.say(task, "Measure the lake")
        await world.held()
        await in_database(renewal.request, alice, task.channel)
        emulator.release("turn")
        await world.rest(task)
        await world.rest(parent)
        return parent, task

    parent, task = play(emulator, scenario)
    assert len(generations(task)) == 2
    delivered = InboxItem.objects.get(thread=parent)
    assert "The lake is 9 m deep." in delivered.text


def test_deleting_stops_the_turn_above_a_renewal_that_waits(emulator, alice):
    emulator.answer(text("Never said."), hold="turn")

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "Hello")
        await world.held()
        await in_database(renewal.request, alice, thread.channel)
        await in_database(conversations.delete, alice, thread.channel)
        after = await in_database(lambda: (Thread.objects.get(pk=thread.pk).state, sources(thread)))
        emulator.release("turn")
        await in_database(conversations.undelete, alice, thread.channel)
        await world.rest(thread)
        return after, thread

    after, thread = play(emulator, scenario)
    assert after == ("idle", [("user", "done"), ("compaction/asked", "done")])
    assert not Message.objects.filter(thread=thread, text="Never said.").exists()
    assert len(generations(thread)) == 1


def test_a_context_in_which_nothing_was_said_is_left_as_it_is_and_who_asked_is_told(emulator, alice):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await in_database(lambda: say(thread, "event", "A note of the framework's"))

        def ask():
            source = frames.RENEWAL_ASKED
            TaskFrame.objects.create(thread=thread, owner=alice, level=3, source=source, state="suspended")
            speaking.wake(thread)

        await in_database(ask)
        await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    assert len(generations(thread)) == 1
    frame = TaskFrame.objects.get(thread=thread)
    assert (frame.state, frame.notice) == ("done", renewal.nothing_said_sentence())
    assert Message.objects.filter(thread=thread, text=frame.notice, model_visible=False).exists()
    assert not emulator.requests(path="/v1/messages")


def test_no_summary_is_kept_that_may_hold_what_is_to_be_forgotten_or_leaves_an_open_turn_behind(alice):
    thread = create_thread(alice)
    say(thread, "user", "Hello")
    material = compaction.gather(thread.pk)
    made = summary.by_rule(material.rows)

    def commit(reason, token=None):
        with transaction.atomic():
            return compaction.commit(material, made, reason, token)

    frame = TaskFrame.objects.create(thread=thread, owner=alice, level=3, source="user", state="suspended")
    assert commit(Generation.EndReason.IDLE) is None
    frame.delete()
    renewal.request_forgetting(material.generation)
    with transaction.atomic():
        token = leases.grant(Thread.objects.select_for_update().get(pk=thread.pk), "a server")
    assert commit(Generation.EndReason.THRESHOLD, token) is None
    assert commit(Generation.EndReason.FORGOTTEN, token) is not None


def test_summaries_by_rule_hand_on_the_summary_before_and_nothing_else_of_the_opening(emulator, alice):
    emulator.fault("status", status=500, match=ASKED, times=-1)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        for ordinal in (2, 3):
            await world.ask(thread, f"Words {ordinal}")
            await in_database(renewal.request, alice, thread.channel)
            await world.until(lambda o=ordinal: Generation.objects.filter(thread=thread, ordinal=o).exists())
            await world.rest(thread)
        return thread

    first, second, third = generations(play(emulator, scenario))
    assert "Words 2" in second.summary
    assert second.summary.endswith("10. How to reach each resource used\nNone.")
    assert (second.summary_before, third.summary_before) == (first.summary, second.summary)
