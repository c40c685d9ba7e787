"""What people's words and tools' results may take of a context: 0.4 of its budget, a message as a round of results."""

import json

import pytest
from asgiref.sync import async_to_sync

from agent.models import InboxItem, ToolCall
from agent.refusals import Refused
from llm import catalog
from llm.emulator.client import text, tool_use
from llm.estimates import estimate_tokens
from tests.agent.world import running_world
from threads.models import Message

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "word " * 8_000  # about 10,000 tokens, where the budget of 16,000 gives a message 6,400


def test_words_that_would_take_more_than_their_share_of_the_budget_are_refused_whole(emulator, alice, small_budget):
    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            with pytest.raises(Refused, match="at most 6,400 at once") as refused:
                await world.say(thread, LONG)
            return refused.value.code

    assert async_to_sync(run)() == "too-long"
    assert not InboxItem.objects.exists() and not Message.objects.exists()


def test_so_is_the_answer_to_a_card_which_stays_open(emulator, alice, small_budget):
    emulator.answer(tool_use("ask_user_question", {"question": "Tea or coffee?"}))

    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.ask(thread, "Make me something")
            call = await world.until(lambda: ToolCall.objects.filter(status="waiting").first())
            with pytest.raises(Refused, match="at most 6,400 at once") as refused:
                await world.answer(thread, call, LONG)
            return refused.value.code

    assert async_to_sync(run)() == "too-long"
    assert ToolCall.objects.get().status == ToolCall.Status.WAITING
    assert not Message.objects.filter(role="tool").exists()


def sent_tokens(model):
    """The estimates of the results' words, as they were sent."""
    wires = Message.objects.filter(role="tool").order_by("id").values_list("wire", flat=True)
    return [estimate_tokens(json.loads(wire)[0]["content"][0]["text"], model) for wire in wires]


def test_one_rounds_results_take_at_most_their_share_of_the_budget(emulator, alice, echo_tool):
    long = "line of output\n" * 20_000
    emulator.answer(
        tool_use("echo", {"words": long}), tool_use("echo", {"words": long}), tool_use("echo", {"words": "x"})
    )
    emulator.answer(text("Long."))

    async def run():
        async with running_world(emulator) as world:
            return await world.ask(await world.new_thread(alice), "Flood me")

    rows = [row for row in async_to_sync(run)() if row.role == "tool"]
    model = catalog.get("emulator-main")
    assert sum(sent_tokens(model)) <= 0.4 * model.context_budget
    for row in rows:
        if row.text != "x":
            assert row.text == long
            assert f"m:{row.pk}" in row.wire
            assert "left out" in row.wire


def test_what_a_round_and_its_cards_take_stays_within_their_share(emulator, alice, small_budget, echo_tool):
    question = tool_use("ask_user_question", {"question": "Tea or coffee?"})
    long = "word " * 3_000
    emulator.answer(question, tool_use("echo", {"words": long}), question, tool_use("echo", {"words": long}))
    emulator.answer(text("Both."))
    most = "tea " * 6_000  # about 4,000 tokens, which a card that waits alone would take

    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.ask(thread, "Make me something")
            for _card in range(2):
                call = await world.until(lambda: ToolCall.objects.filter(status="waiting").order_by("id").first())
                with pytest.raises(Refused, match=r"at most [12],\d{3} at once"):
                    await world.answer(thread, call, most)
                await world.answer(thread, call, "tea " * 1_500)
            await world.rest(thread)

    async_to_sync(run)()
    assert sum(sent_tokens(catalog.get("emulator-main"))) <= 6_400


def test_words_that_are_too_long_for_an_open_card_are_refused_too(emulator, alice, small_budget, echo_tool):
    emulator.answer(tool_use("ask_user_question", {"question": "Tea or coffee?"}), tool_use("echo", {"words": LONG}))

    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.ask(thread, "Make me something")
            await world.until(lambda: ToolCall.objects.filter(status="waiting").first())
            with pytest.raises(Refused, match=r"at most [34],\d{3} at once"):
                await world.say(thread, "tea " * 8_000)

    async_to_sync(run)()
    assert ToolCall.objects.filter(status="waiting").count() == 1
    assert InboxItem.objects.count() == 1  # the words that began the turn


def test_so_many_results_that_each_could_hardly_say_where_it_is_stay_within_the_share(
    emulator, alice, small_budget, echo_tool
):
    emulator.answer(*[tool_use("echo", {"words": "字" * 400})] * 60)
    emulator.answer(text("Enough."))

    async def run():
        async with running_world(emulator) as world:
            await world.ask(await world.new_thread(alice), "Flood me")

    async_to_sync(run)()
    tokens = sent_tokens(catalog.get("emulator-main"))
    assert len(tokens) == 60 and sum(tokens) <= 6_400
    assert Message.objects.filter(role="tool", text="字" * 400).count() == 60
