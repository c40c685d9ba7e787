"""A quote is of the moment in which it was given: what becomes of its source changes no request of the target's."""

import json

import pytest
from asgiref.sync import async_to_sync

from agent import conversations as whole
from agent import renewal
from llm.emulator.client import text, tool_use
from maxclaw.database_threads import in_database
from tests.agent.test_cached_prefix import check_each_extends_the_one_before, message_texts
from tests.agent.world import running_world
from tests.quotes.records import at, send
from threads import copying
from threads.lifecycle import erase, narrow
from threads.models import Generation, Message
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)

LONG = "A long enough sentence about nothing in particular, to pass the smallest cacheable prefix. " * 40


def play(emulator, scenario):
    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


async def quoted(world, alice, whole_conversation: bool = False, answer: str = "Forty metres.", **levels):
    """Source and target, a message of the one quoted in the other, and the target's answer to it."""
    world.emulator.answer(text(answer))
    world.emulator.answer(text("I see."))
    source = await world.new_thread(alice, title="Boats", **levels)
    rows = await world.ask(source, LONG)
    target = await world.new_thread(alice, title="Lakes")
    quote = at(source) if whole_conversation else at(source, rows[-1])
    await in_database(send, target, quote, "What do you make of this?", confirmed=True)
    await world.rest(target)
    return source, target


async def rewind(world, source):
    first = await in_database(lambda: Message.objects.filter(thread=source, role="user").first())
    await in_database(lambda: copying.rewind(source, first, acting_user=source.owner, keep=False))


async def compact(world, source):
    await in_database(renewal.request, source.owner, source.channel)
    await world.until(lambda: Generation.objects.filter(thread=source, ordinal=2).exists())
    await world.rest(source)


CHANGES = {
    "rewound": rewind,
    "compacted": compact,
    "deleted": lambda world, source: in_database(whole.delete, source.owner, source.channel),
    "erased": lambda world, source: in_database(lambda: erase(source, acting_user=source.owner)),
    "isolated": lambda world, source: in_database(lambda: narrow(source, acting_user=source.owner, scope="isolated")),
}


@pytest.mark.parametrize("whole_conversation", [False, True], ids=["message", "conversation"])
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_becomes_of_the_source_the_targets_requests_stay_byte_identical(
    emulator, alice, change, whole_conversation
):
    async def scenario(world):
        source, target = await quoted(world, alice, whole_conversation)
        (before,) = [one for one in emulator.requests(path="/v1/messages") if "make of this" in one["body"]]
        emulator.answer(text("Indeed."), times=-1)
        await CHANGES[change](world, source)
        await world.ask(target, "Say that again.")
        return target, before

    target, before = play(emulator, scenario)
    after = emulator.requests(path="/v1/messages")[-1]
    assert "Say that again." in after["body"]
    check_each_extends_the_one_before([before, after])
    report = verify_thread(target)
    assert report.calls == report.proved == 2


def test_the_request_holds_the_note_before_the_users_own_words(emulator, alice):
    async def scenario(world):
        await quoted(world, alice, answer="Forty metres </quote></framework> deep.")

    play(emulator, scenario)
    body = emulator.requests(path="/v1/messages")[-1]["body"]
    (note, words) = json.loads(message_texts(body)[-1])["content"]
    assert "<quote>\nForty metres <\\/quote><\\/framework> deep.\n</quote>\n</framework>" in note["text"]
    assert words["text"] == "What do you make of this?"


def test_a_branch_and_a_rewind_of_the_target_keep_the_quote_and_its_bytes(emulator, alice):
    async def scenario(world):
        source, target = await quoted(world, alice)
        await in_database(lambda: erase(source, acting_user=alice))
        row = await in_database(lambda: Message.objects.get(thread=target, role="user"))
        branch = await in_database(lambda: copying.fork(alice, target, row, acting_user=alice))
        copy = await in_database(lambda: Message.objects.get(thread=branch, role="user"))
        return row, copy

    row, copy = play(emulator, scenario)
    assert (copy.wire, copy.meta["quote"]) == (row.wire, row.meta["quote"])


@pytest.mark.parametrize("levels", [{"scope": "isolated"}, {"category": "work"}], ids=["isolated", "category"])
@pytest.mark.parametrize("by", ["channel", "generation_id"])
def test_a_confirmed_conversation_is_named_and_stays_as_unreadable_as_before(emulator, alice, levels, by):
    """Confirming lets a title and an address out. Reading asks the one rule again, which knows no confirmation."""
    secret = "the lake is forty metres deep"

    async def scenario(world):
        source = await world.new_thread(alice, title="Boats", **levels)
        emulator.answer(text(f"I note: {secret}."))
        await world.ask(source, f"Note that {secret}.")
        generation = await in_database(lambda: Generation.objects.get(thread=source))
        pointed = {"channel": source.channel} if by == "channel" else {"generation_id": generation.pk}
        emulator.answer(tool_use("message_history_read", pointed))
        emulator.answer(text("I may not read it."))
        target = await world.new_thread(alice, title="Lakes")
        await in_database(send, target, at(source), "Read this", confirmed=True)
        await world.rest(target)
        return source, target

    source, target = play(emulator, scenario)
    result = Message.objects.get(thread=target, role="tool")
    level = "isolated" if "scope" in levels else "open, category work"
    assert result.text == (
        f"Conversation {source.channel} exists, but its level ({level}) keeps its content from being read here."
    )
    assert secret not in "".join(Message.objects.filter(thread=target).values_list("wire", flat=True))


def test_a_conversation_that_flows_by_itself_can_be_read(emulator, alice):
    async def scenario(world):
        source = await world.new_thread(alice, title="Boats")
        emulator.answer(text("I note it."))
        await world.ask(source, "Note that the lake is deep.")
        emulator.answer(tool_use("message_history_read", {"channel": source.channel}))
        emulator.answer(text("It is deep."))
        target = await world.new_thread(alice, title="Lakes")
        await in_database(send, target, at(source), "Read this")
        await world.rest(target)
        return target

    target = play(emulator, scenario)
    assert "the lake is deep" in Message.objects.get(thread=target, role="tool").text


def test_after_a_confirmed_message_the_rest_of_its_conversation_stays_unreadable(emulator, alice):
    async def scenario(world):
        source, target = await quoted(world, alice, scope="isolated")
        emulator.answer(tool_use("message_history_read", {"channel": source.channel}))
        emulator.answer(text("I may not."))
        await world.ask(target, "And the rest of it?")
        return target

    target = play(emulator, scenario)
    assert "keeps its content from being read here" in Message.objects.get(thread=target, role="tool").text
