"""`remember`: what the person asked for in so many words, with that message as its evidence."""

import pytest
from asgiref.sync import async_to_sync

from agent.models import ToolCall
from llm.emulator.client import text, tool_use
from memory.models import Fact
from tests.agent.world import running_world

pytestmark = pytest.mark.django_db(transaction=True)

FACT = {"text": "Alice is allergic to nuts.", "kind": "about-user", "aspect": "fact", "tone": "remark"}


def play(emulator, scenario):
    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


def results():
    calls = ToolCall.objects.filter(tool="remember").order_by("pk").select_related("result")
    return [(call.status, call.result.text) for call in calls]


def test_what_the_person_asks_for_is_remembered_with_their_message(emulator, alice):
    emulator.answer(tool_use("remember", FACT))
    emulator.answer(text("Done."))
    emulator.answer(tool_use("remember", FACT))
    emulator.answer(text("Done."))
    emulator.answer(tool_use("remember", FACT | {"text": "Alice is allergic to eggs.", "replaces": "f:FACT"}))
    emulator.answer(text("So be it."))
    emulator.answer(
        tool_use("remember", FACT | {"text": "Her key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCD"})
    )
    emulator.answer(text("I will not."))

    async def scenario(world):
        thread = await world.new_thread(alice, category="personal")
        rows = await world.ask(thread, "Remember that I am allergic to nuts.")
        await world.ask(thread, "Remember it once more: I am allergic to nuts.")
        await world.ask(thread, "Eggs, I meant.")
        await world.ask(thread, "Remember my key.")
        isolated = await world.new_thread(alice, scope="isolated")
        await world.ask(isolated, "记住我住在杭州。")  # by the emulator's rules
        return rows[0], isolated

    said, isolated = play(emulator, scenario)
    nuts, hangzhou = Fact.objects.order_by("pk")
    assert (nuts.text, nuts.writer, nuts.scope, nuts.category) == (FACT["text"], "remember", "open", "personal")
    assert (hangzhou.scope, hangzhou.island_id) == ("isolated", isolated.pk)
    assert "杭州" in hangzhou.text
    proofs = nuts.evidence.order_by("pk")
    assert [(proof.kind, proof.message.text) for proof in proofs] == [
        ("max-stated", "Remember that I am allergic to nuts."),
        ("max-stated", "Remember it once more: I am allergic to nuts."),
    ]
    assert proofs[0].message_id == said.pk
    statuses, answers = zip(*results(), strict=True)
    assert statuses == ("done", "done", "failed", "failed", "done")
    assert answers[0] == f"Remembered as fact f:{nuts.pk}."
    assert answers[1].startswith("This was remembered already")
    assert answers[2] == "fact_id is the number of a fact that you were shown."
    assert "Secrets are not remembered" in answers[3]


def test_a_fact_is_replaced_and_a_task_remembers_nothing_of_its_own(emulator, alice):
    emulator.answer(tool_use("remember", FACT))
    emulator.answer(text("Done."))

    async def first(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "Remember that I am allergic to nuts.")
        return thread

    thread = play(emulator, first)
    [nuts] = Fact.objects.all()
    emulator.answer(tool_use("remember", FACT | {"text": "Alice is allergic to eggs.", "replaces": f"f:{nuts.pk}"}))
    emulator.answer(text("Done."))
    emulator.answer(tool_use("dispatch_task", {"title": "t", "instructions": "Remember that I like rain."}))
    emulator.answer(tool_use("remember", FACT), match={"contains": "I like rain"}, times=1)
    emulator.answer(text("Started."), times=-1)

    async def second(world):
        await world.ask(thread, "No: eggs. Remember that.")
        await world.ask(thread, "Start a task.")
        await world.until(lambda: ToolCall.objects.filter(tool="remember", result__isnull=False).count() == 3)

    play(emulator, second)
    nuts.refresh_from_db()
    assert (nuts.status, nuts.superseded_by.text) == ("superseded", "Alice is allergic to eggs.")
    assert results()[2][0] == "failed"
    assert "said nothing in this conversation" in results()[2][1]
