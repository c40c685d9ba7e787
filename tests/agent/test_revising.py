"""Going back in a conversation, and what is done to a whole one."""

import json

import pytest
from asgiref.sync import async_to_sync

from agent import conversations, meter, revising, sending
from agent.models import InboxItem, TurnEvent
from agent.refusals import Refused
from agent.ticks import erase_deleted_conversations
from chat.conversations import archive_conversation, unarchive_conversation
from llm.emulator.client import text
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.database_threads import in_database
from tests.agent.world import running_world
from threads.access import visible_to
from threads.lifecycle import create_thread
from threads.models import Message, Thread
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)


def play(emulator, scenario):
    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


def standing(thread):
    rows = Message.objects.filter(thread=thread, model_visible=True).exclude(left_because="superseded")
    return [row.text for row in rows.order_by("id")]


async def two_exchanges(world, alice):
    world.emulator.answer(text("Answer one."))
    world.emulator.answer(text("Answer two."))
    thread = await world.new_thread(alice)
    await world.ask(thread, "Question one")
    await world.ask(thread, "Question two")
    return thread


def test_a_rewind_takes_later_words_out_of_the_context_and_undo_brings_them_back(emulator, alice):
    async def scenario(world):
        thread = await two_exchanges(world, alice)
        rows = await world.rows(thread)
        await in_database(revising.rewind, alice, thread.channel, rows[1].pk)
        rewound = await in_database(standing, thread)
        await in_database(revising.undo_rewind, alice, thread.channel)
        world.emulator.answer(text("Answer three."))
        await world.ask(thread, "Question three")
        return thread, rewound

    thread, rewound = play(emulator, scenario)
    assert rewound == ["Question one", "Answer one."]
    sent = json.dumps(emulator.bodies()[-1]["messages"])
    assert all(words in sent for words in ("Question one", "Answer one.", "Question two", "Answer two."))
    report = verify_thread(thread)
    assert report.calls == report.proved == 3


@pytest.mark.parametrize("which", [0, 2])
def test_an_edit_replaces_the_words_and_all_that_followed(emulator, alice, which):
    async def scenario(world):
        thread = await two_exchanges(world, alice)
        rows = await world.rows(thread)
        world.emulator.answer(text("New answer."))
        await in_database(
            lambda: revising.edit(alice, thread.channel, rows[which].pk, "Other question", client_key="edited")
        )
        await world.rest(thread)
        return thread

    thread = play(emulator, scenario)
    kept = ["Question one", "Answer one."] if which else []
    assert standing(thread) == [*kept, "Other question", "New answer."]
    assert "Question two" not in json.dumps(emulator.bodies()[-1]["messages"])


def test_a_retry_asks_the_last_words_again(emulator, alice):
    async def scenario(world):
        thread = await two_exchanges(world, alice)
        world.emulator.answer(text("Better answer."))
        await in_database(lambda: revising.retry(alice, thread.channel, client_key="again"))
        await in_database(lambda: revising.retry(alice, thread.channel, client_key="again"))
        await world.rest(thread)
        return thread

    assert standing(play(emulator, scenario)) == ["Question one", "Answer one.", "Question two", "Better answer."]


def test_a_fork_goes_on_by_itself_and_knows_its_own_channel(emulator, alice):
    async def scenario(world):
        thread = await two_exchanges(world, alice)
        rows = await world.rows(thread)
        branch = await in_database(revising.fork, alice, thread.channel, rows[1].pk)
        branch = await world.rest(branch)
        world.emulator.answer(text("Branch answer."))
        await world.ask(branch, "Branch question")
        return thread, branch

    thread, branch = play(emulator, scenario)
    assert standing(thread)[-1] == "Answer two."
    messages = emulator.bodies()[-1]["messages"]
    assert f"channel: {branch.channel}" in json.dumps(messages)
    assert "Question two" not in json.dumps(messages)


def test_waiting_words_can_be_taken_back(alice, emulator):
    thread = create_thread(alice)
    item = sending.send(alice, thread.channel, "Wait", client_key="k")
    assert revising.withdraw(alice, thread.channel, item.pk).text == "Wait"
    with pytest.raises(Refused):
        revising.withdraw(alice, thread.channel, item.pk)
    assert TurnEvent.objects.order_by("-number").first().kind == "unqueued"
    assert not InboxItem.objects.filter(state="waiting").exists()


def test_nothing_of_anybody_elses_can_be_revised(alice, bob, emulator):
    async def scenario(world):
        thread = await two_exchanges(world, alice)
        return thread, await world.rows(thread)

    thread, rows = play(emulator, scenario)
    for attempt in (
        lambda: revising.rewind(bob, thread.channel, rows[0].pk),
        lambda: revising.undo_rewind(bob, thread.channel),
        lambda: revising.edit(bob, thread.channel, rows[0].pk, "x", client_key="k"),
        lambda: revising.retry(bob, thread.channel, client_key="k"),
        lambda: revising.fork(bob, thread.channel, rows[0].pk),
        lambda: conversations.delete(bob, thread.channel),
        lambda: conversations.choose_model(bob, thread.channel, ""),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.code == "no-such-thread"
    own = create_thread(bob)
    with pytest.raises(Refused) as refused:
        revising.rewind(bob, own.channel, rows[0].pk)
    assert refused.value.code == "no-such-message"
    assert standing(thread) == ["Question one", "Answer one.", "Question two", "Answer two."]


def test_a_deleted_conversation_is_gone_at_once_comes_back_and_is_erased_after_ten_minutes(alice, emulator):
    thread = create_thread(alice)
    conversations.delete(alice, thread.channel)
    assert not visible_to(alice).filter(pk=thread.pk).exists()
    with pytest.raises(Refused):
        sending.send(alice, thread.channel, "Hello?", client_key="k")
    conversations.undelete(alice, thread.channel)
    assert visible_to(alice).filter(pk=thread.pk).exists()
    conversations.delete(alice, thread.channel)
    erase_deleted_conversations(clock.now())
    assert Thread.objects.filter(pk=thread.pk).exists()
    with clock.moved(601):
        erase_deleted_conversations(clock.now())
    assert not Thread.objects.filter(pk=thread.pk).exists()


def test_tasks_go_and_come_back_with_their_conversation(alice, emulator):
    thread = create_thread(alice, title="trip")
    hotels = create_thread(alice, kind="task", parent=thread, title="hotels")
    create_thread(alice, kind="task", parent=hotels, title="prices")
    trains = create_thread(alice, kind="task", parent=thread, title="trains")

    def listed():
        return set(visible_to(alice).exclude(kind="main").values_list("title", flat=True))

    conversations.delete(alice, trains.channel)
    with clock.moved(1):
        conversations.delete(alice, thread.channel)
    assert listed() == set()
    conversations.undelete(alice, thread.channel)
    assert listed() == {"trip", "hotels", "prices"}, "what was deleted by itself stays deleted"
    with clock.moved(2):
        conversations.delete(alice, thread.channel)
    with clock.moved(700):
        erase_deleted_conversations(clock.now())
    assert set(Thread.objects.filter(owner=alice).values_list("kind", flat=True)) == {"main"}


def test_what_waits_in_an_archived_conversation_is_answered_when_it_comes_back(emulator, alice):
    emulator.answer(text("Here I am."))

    async def scenario(world):
        thread = await world.new_thread(alice, title="put away")
        await in_database(archive_conversation, alice, thread.channel)
        await in_database(lambda: InboxItem.objects.create(thread=thread, owner=alice, text="Still there?", level=3))
        await in_database(unarchive_conversation, alice, thread.channel)
        await world.rest(thread)
        return await world.rows(thread)

    assert "Here I am." in [row.text for row in play(emulator, scenario)]


def test_deleting_stops_a_running_turn(emulator, alice):
    emulator.answer(text("Too late."), hold="held")

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.say(thread, "Hello")
        await world.held()
        await in_database(conversations.delete, alice, thread.channel)
        emulator.release("held")
        await world.rest(thread)
        return await world.rows(thread)

    assert "Too late." not in [row.text for row in play(emulator, scenario)]


def test_the_meter_tells_what_the_last_request_held(emulator, alice):
    thread = play(emulator, lambda world: two_exchanges(world, alice))
    view = meter.meter_view(thread)
    usage = emulator.requests(path="/v1/messages")[-1]["usage"]
    whole = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    assert view["live_tokens"] == whole + usage["output_tokens"]
    assert view["budget"] == 100_000
    assert view["cache_read_share"] == usage["cache_read_input_tokens"] / whole
    # Tokens and budget stay one model's, whatever is picked for the next answer; what nobody told is not nothing.
    assert view["model"] == "emulator-main"
    thread.model = "emulator-light"
    thread.save(update_fields=["model"])
    assert meter.meter_view(thread) == view
    assert meter.cache_read_share(ModelCall(input_tokens=10, cache_read_tokens=0)) == 0
    assert meter.cache_read_share(ModelCall(input_tokens=10)) is None
    fresh = meter.meter_view(create_thread(alice))
    assert (fresh["model"], fresh["live_tokens"], fresh["cache_read_share"]) == ("emulator-main", None, None)
