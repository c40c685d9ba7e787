"""What a turn costs the database: few statements, and no more in a long conversation than in a short one."""

import asyncio
from contextlib import contextmanager

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from agent.models import InboxItem, TaskFrame, TurnEvent
from benchmarks.instruments import StatementCounter
from llm.emulator.client import text
from llm.models import ModelCall, RequestHeader
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory.models import FactEvidence, FactUse
from quotes import ingress
from tests.agent.world import WAIT_SECONDS, running_world
from tests.memory.remembered import remember
from tests.quotes.records import at
from tests.threads.records import exchange, thread_of
from threads.models import Generation, Message
from threads.signals import thread_settled
from threads.transcript import NewMessage, append_many, lock_thread, text_block

pytestmark = pytest.mark.django_db(transaction=True)

STATEMENTS_MAX = 25
WORDS = "And what about the moon?"
# A statement may pass over a few rows that its index does not tell apart.
SLACK_ROWS = 5
# The tables that a conversation fills as it grows.
GROWING = ("threads_message", "agent_taskframe", "agent_inboxitem", "agent_turnevent", "llm_modelcall")


@pytest.fixture(autouse=True)
def undisturbed(settings):
    """A turn that takes long, on a busy machine, renews its lease: a query of the clock's."""
    settings.LEASE_SECONDS, settings.LEASE_RENEW_SECONDS = 7_200, 3_600


@contextmanager
def counted():
    counter = StatementCounter()
    try:
        yield counter
    finally:
        counter.stop()


async def statements_of_a_turn(world, counter, thread, quote=None):
    """The statements of one turn, from sending (with what the words quote) until the runner rests; nobody else asks the
    database meanwhile."""
    settled, loop = asyncio.Event(), asyncio.get_running_loop()

    def on_settled(**_signal):
        loop.call_soon_threadsafe(settled.set)

    thread_settled.connect(on_settled)
    try:
        counter.kept = []
        if quote is None:
            await world.say(thread, WORDS)
        else:
            key = f"quoting {quote['kind']}"
            await in_database(ingress.send, thread.owner, thread.channel, WORDS, client_key=key, quote=quote)
        await asyncio.wait_for(settled.wait(), WAIT_SECONDS)
        while world.runner._driving:
            await asyncio.sleep(0.01)
    finally:
        thread_settled.disconnect(on_settled)
    return counter.kept


def play(emulator, scenario):
    async def run(counter):
        async with running_world(emulator) as world:
            return await scenario(world, counter)

    emulator.answer(text("It pulls at the sea."), times=-1)
    with counted() as counter:
        return async_to_sync(run)(counter)


def listed(statements):
    return "\n".join(" ".join(statement.text.split())[:150] for statement in statements)


@pytest.mark.parametrize("facts", [0, 40])
def test_a_turn_without_tools_takes_at_most_25_statements_the_first_of_a_remembered_person_and_a_quote_too(
    emulator, alice, bob, facts
):
    for number in range(facts):
        remember(alice, f"Alice asks what the moon is about, for the {number}. time.")
    if facts:
        rewound, _answer = exchange(thread_of(alice), "I asked about the moon.")
        Message.objects.filter(pk=rewound.pk).update(left_at_cut=1, left_because="superseded")
        stale = remember(alice, f"She says: {WORDS}")
        FactEvidence.objects.create(fact=stale, owner=alice, kind="max-stated", message=rewound)

    async def scenario(world, counter):
        await world.ask(await world.new_thread(bob), "Hello")  # the header is stored once for everybody
        thread, quoting = await world.new_thread(alice), await world.new_thread(alice)
        turns = [await statements_of_a_turn(world, counter, thread) for _turn in range(2)]
        answer = (await world.rows(thread))[-1]
        for quote in (at(thread, answer), at(thread)):
            turns.append(await statements_of_a_turn(world, counter, quoting, quote))
        return turns

    for statements in play(emulator, scenario):
        assert 10 < len(statements) <= STATEMENTS_MAX, listed(statements)
    assert FactUse.objects.exists() == bool(facts)
    assert not FactUse.objects.filter(fact__text__startswith="She says").exists(), "it is nearest, and stale"


def with_past(thread, rows, header_id):
    """So many rows in an earlier generation, and all that half as many turns leave behind; the live one is empty."""
    owner_id, turns = thread.owner_id, rows // 2
    of_thread = {"thread_id": thread.pk, "owner_id": owner_id}
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        first = Generation.objects.get(thread=thread)
        said = [
            NewMessage(
                role=("user", "assistant")[place % 2], text=f"Row {place}.", blocks=[text_block(f"Row {place}.")]
            )
            for place in range(rows)
        ]
        asked = append_many(locked, first, said)[::2]
        Generation.objects.filter(pk=first.pk).update(ended=clock.now(), end_reason="threshold", summary="A summary.")
        Generation.objects.create(**of_thread, ordinal=2, summary_before="A summary.")
        ended = {"state": "done", "end_reason": "answered", "ended": clock.now()}
        TaskFrame.objects.bulk_create(TaskFrame(**of_thread, **ended) for _turn in range(turns))
        InboxItem.objects.bulk_create(
            InboxItem(**of_thread, text=row.text, client_key=f"past {row.pk}", state="taken", message=row)
            for row in asked
        )
        ModelCall.objects.bulk_create(
            ModelCall(
                purpose="turn",
                **of_thread,
                generation_id=row.generation_id,
                header_id=header_id,
                model="emulator-main",
                body_sha256="0" * 64,
                last_message_id=row.pk,
                max_tokens=1_000,
                first_token_ms=1,
                outcome="complete",
            )
            for row in asked
        )
        TurnEvent.objects.bulk_create(
            TurnEvent(**of_thread, number=number, kind="anew", body={}) for number in range(1, 4 * turns + 1)
        )


def nodes(plan):
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


def explained(statement, options):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN ({options} FORMAT JSON) {statement.text}", statement.parameters)
        [[[explanation]]] = cursor.fetchall()
        transaction.set_rollback(True)
    return [node for node in nodes(explanation["Plan"]) if "Relation Name" in node]


def rows_read(statement):
    """How many rows of tables the database looks at for a SELECT, those that it passes over among them."""
    return sum(
        node["Actual Loops"] * (node["Actual Rows"] + sum(node.get(f"Rows Removed by {why}", 0) for why in WHYS))
        for node in explained(statement, "ANALYZE, TIMING OFF,")
    )


WHYS = ("Filter", "Index Recheck")


def test_a_turn_asks_and_reads_no_more_in_a_long_conversation_than_in_a_short_one(emulator, alice):
    """With the same live context: what was said before it, and the turns of then, cost nothing."""

    async def scenario(world, counter):
        await world.ask(await world.new_thread(alice), "Hello")
        header = await in_database(RequestHeader.objects.get)
        turns = []
        for rows in (10, 1_000):
            thread = await world.new_thread(alice)
            await in_database(with_past, thread, rows, header.pk)
            await world.ask(thread, WORDS)
            turns.append((thread, rows))
        await in_database(analyze)
        return [await statements_of_a_turn(world, counter, thread) for thread, _rows in turns]

    # What two threads ask at once comes in any order.
    short, long = (sorted(turn, key=lambda statement: statement.text) for turn in play(emulator, scenario))
    assert [statement.rows for statement in long] == [statement.rows for statement in short], listed(long)
    asking = [place for place, statement in enumerate(long) if statement.text.startswith("SELECT")]
    assert len(asking) > 5
    for place in asking:
        assert rows_read(long[place]) <= rows_read(short[place]) + SLACK_ROWS, long[place].text
    for statement in long:
        scanned = {node["Relation Name"] for node in explained(statement, "") if node["Node Type"] == "Seq Scan"}
        assert not scanned & set(GROWING), statement.text


def analyze():
    with connection.cursor() as cursor:
        cursor.execute(f"ANALYZE {', '.join(GROWING)}")
