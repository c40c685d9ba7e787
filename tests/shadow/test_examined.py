"""Each message is read by shadows exactly once, however its generation ends: real conversations with real ends, read
while they went on and once more after it."""

import asyncio
import io
import json

import pytest
from django.core.management import call_command

from agent import compaction, renewal, revising
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory.forgetting import forget
from memory.models import FactUse
from shadow import comparison_report, cursors, tasks, triggers
from shadow.comparison_reading import LIVE, last_week
from tests.memory.facts import fact_row
from tests.shadow.playing import drain, play
from tests.threads.records import live
from threads import lifecycle
from threads.models import Generation, Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)

# About 5,000 tokens: three of them fill a context of 16,000.
WORDS = "Some words about the garden and its many roses. " * 450
EndReason = Generation.EndReason


def brief_and_forget(person, thread):
    """The live context knows a fact, which is then forgotten."""
    said = Message.objects.filter(thread=thread, role="user").earliest("pk")
    fact = fact_row(person, said)
    FactUse.objects.create(fact=fact, owner=person, how="briefed", generation=live(thread))
    forget(fact, writer="person", actor=person)


def import_history(person, folder):
    """One conversation that fills several contexts."""
    now = clock.now().isoformat()
    lines = [
        {"conversation": "old", "id": str(number), "role": role, "text": f"{number}: {WORDS[:4800]}", "created": now}
        for number, role in enumerate(["user", "assistant"] * 10)
    ]
    file = folder / "lines.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    call_command("import_conversations", str(file), user=person.username, stdout=io.StringIO(), stderr=io.StringIO())


async def end(world, way, thread, person):
    """The generation of a conversation ends in the given way."""
    match way:
        case EndReason.THRESHOLD:
            for _turn in range(3):
                await world.ask(thread, WORDS)
        case EndReason.IDLE:
            assert await compaction.compact_idle(thread.pk)
        case EndReason.MANUAL:
            await in_database(renewal.request, person, thread.channel)
        case EndReason.FORGOTTEN:
            await in_database(brief_and_forget, person, thread)
        case EndReason.REWIND:
            first = (await world.rows(thread))[1]
            await in_database(revising.rewind, person, thread.channel, first.pk)
            await in_database(revising.undo_rewind, person, thread.channel)
        case EndReason.CLOSED:
            await in_database(lifecycle.end, thread)
        case "archived":
            await in_database(lambda: lifecycle.archive(thread, acting_user=person))
    if way in EndReason.values:
        await world.until(lambda: Generation.objects.filter(thread=thread, end_reason=way).exists())
    await world.rest(thread)


def test_every_message_is_read_once_for_every_way_a_generation_can_end(emulator, alice, small_budget, tmp_path):
    ways = [*(way for way in EndReason.values if way != EndReason.IMPORT), "archived", LIVE]

    async def scenario(world):
        threads = {way: await world.new_thread(alice, title=way) for way in ways}
        await asyncio.gather(*(world.ask(thread, "I prefer tea.") for thread in threads.values()))
        for thread in threads.values():
            await in_database(triggers.trigger, thread.pk, "turn-failed")
        assert await drain() == len(ways)
        await asyncio.gather(*(goes_on_and_ends(world, way, thread) for way, thread in threads.items()))

    async def goes_on_and_ends(world, way, thread):
        await world.ask(thread, "I live in Porto.")
        await end(world, way, thread, alice)
        if await in_database(lambda: Thread.objects.get(pk=thread.pk).status) == Thread.Status.ACTIVE:
            await world.ask(thread, "And I have a cat.")

    play(emulator, scenario)
    import_history(alice, tmp_path)
    with clock.moved(25 * 60):
        cursors.initialize()
        while triggers.queue_idle(clock.now(), thorough=True) or triggers.waiting().exists():
            assert tasks.drain()
        found = comparison_report.report(last_week()).examined["shadow"]
    assert found.keys() == {*EndReason.values, LIVE}
    assert {way: (row.never, row.again, row.share) for way, row in found.items()} == dict.fromkeys(found, (0, 0, 1.0))
    assert min(row.once for row in found.values()) >= 2
