"""The person goes first: their words end a shadow's request at once, in whatever process it runs."""

import asyncio
import threading

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction

from agent import questions, revising, sending
from agent.models import ToolCall
from llm.emulator.client import text, tool_use
from llm.models import ModelCall
from maxclaw.database_threads import in_database
from memory.fact_rows import facts_are_wanted, lock_facts
from memory.forgetting import forget
from memory.models import Fact
from shadow import asking, cancelling, question, runs, tasks, triggers
from shadow.models import ShadowRun
from tests.maxclaw.running import wait_until
from tests.memory.facts import fact_row, remember
from tests.raw_sql import run as execute
from tests.shadow.playing import ASKED, LONG, drain, item, play, proposes
from tests.threads.records import say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads import lifecycle
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rested(emulator, alice):
    """Two conversations with a warm prefix."""

    async def scenario(world):
        threads = [await world.new_thread(alice) for _number in range(2)]
        for thread in threads:
            await world.ask(thread, LONG)
        return threads

    return play(emulator, scenario)


def says(way, thread):
    """The person speaks in one of the ways there are."""
    person, channel = thread.owner, thread.channel
    if way in ("words", "words at a card"):
        sending.send(person, channel, "One thing more.", client_key="1")
    elif way == "a card's answer":
        questions.answer_question(person, channel, ToolCall.objects.get(status="waiting").pk, "The red one.")
    elif way == "an edit":
        said = Message.objects.get(thread=thread, role="user")
        revising.edit(person, channel, said.pk, "Something else.", client_key="1")
    else:
        revising.retry(person, channel, client_key="1")


def begun(work, waits_for, count=1):
    """Work in a thread, once so many wait for locks of these kinds."""
    worker = threading.Thread(target=lambda: (work(), connection.close()))
    worker.start()
    wait_until(lambda: waiting(waits_for) >= count, what=f"the wait for {waits_for}")
    return worker


def waiting(kinds):
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = ANY (%s)", [kinds])
        return cursor.fetchone()[0]


@pytest.mark.parametrize("way", ["words", "words at a card", "a card's answer", "an edit", "a retry"])
def test_whatever_the_person_says_ends_what_runs_and_drops_what_waits_and_their_turn_goes_on(emulator, alice, way):
    card = way in ("words at a card", "a card's answer")
    emulator.answer(*([tool_use("ask_user_question", {"question": "Which?"})] if card else [text("Well.")]))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        proposes(emulator, hold="asked")
        if not card:
            await in_database(triggers.trigger, thread.pk, "turn-failed")
        shadows = asyncio.create_task(drain())
        await world.held()
        await in_database(triggers.trigger, thread.pk, "task-ended")
        emulator.answer(text("Then so."))
        await in_database(says, way, thread)
        await world.rest(thread)
        await shadows
        return thread

    thread = play(emulator, scenario)
    [run] = ShadowRun.objects.filter(thread=thread)  # the queued one went
    assert (run.status, run.path, run.error) == ("cancelled", "hot", "interrupted-by-max")
    assert run.duration_ms is not None
    assert ModelCall.objects.get(pk=run.call).outcome == "interrupted"
    # Nobody released the shadow's answer, and the turn had its own.
    assert Message.objects.filter(thread=thread, role="assistant").latest("pk").text == "Then so."


def test_what_the_request_of_a_cancelled_run_used_stands_with_the_run(emulator, alice, rested):
    thread = rested[0]
    emulator.answer(text("Some words and then silence."), match=ASKED)
    emulator.fault("stall", after_deltas=2, name="stalled", match=ASKED)

    async def scenario(world):
        await in_database(triggers.trigger, thread.pk, "waiting-max")
        shadows = asyncio.create_task(drain())
        await world.held()
        await in_database(sending.send, alice, thread.channel, "One thing more.", client_key="1")
        await shadows
        await world.rest(thread)

    play(emulator, scenario)
    run = ShadowRun.objects.get()
    call = ModelCall.objects.get(pk=run.call)
    assert (run.status, call.outcome, run.proposals.count()) == ("cancelled", "interrupted", 0)
    assert call.cache_read_tokens > 1_000 and run.duration_ms == call.total_ms
    for figure in ("input_tokens", "output_tokens", "cache_read_tokens", "prices", "cost"):
        assert getattr(run, figure) == getattr(call, figure)


@pytest.mark.parametrize("heard", [True, False])
def test_words_between_the_answer_and_the_commit_leave_no_proposal(emulator, alice, rested, heard):
    thread = rested[0]
    proposes(emulator, item(Message.objects.get(thread=thread, role="user").pk))
    triggers.trigger(thread.pk, "waiting-max")
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    asked = question.text(made_of.generation, made_of.page, "")
    answer = async_to_sync(asking.answer_of)(run, made_of, asked)
    if heard:
        sending.send(alice, thread.channel, "One thing more.", client_key="1")
    else:
        say(thread, "user", "Committed, and nobody was told yet.")
    runs.finish(run, made_of, answer)
    run.refresh_from_db()
    assert (run.status, run.error, run.proposals.count()) == ("cancelled", "interrupted-by-max", 0)
    call = ModelCall.objects.get(pk=run.call)
    # The whole answer was paid for.
    assert call.output_tokens > 0
    assert (run.cache_read_tokens, run.output_tokens) == (call.cache_read_tokens, call.output_tokens)


def test_words_that_come_while_proposals_are_stored_go_first(alice, rested, emulator):
    thread = rested[0]
    said = Message.objects.get(thread=thread, role="user")
    proposes(emulator, *(item(said.pk, f"Prefers tea number {number}.") for number in range(3)))
    triggers.trigger(thread.pk, "waiting-max")
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    answer = async_to_sync(asking.answer_of)(run, made_of, question.text(made_of.generation, made_of.page, ""))

    with transaction.atomic():
        # The conversation is held, and nothing can be stored yet.
        execute("LOCK TABLE shadow_shadowfactproposal IN SHARE MODE")
        storing = begun(lambda: runs.finish(run, made_of, answer), ["relation"])
        speaking = begun(
            lambda: sending.send(alice, thread.channel, "One thing more.", client_key="1"), ["transactionid", "tuple"]
        )
    storing.join(60)
    speaking.join(60)
    run.refresh_from_db()
    assert (run.status, run.error, run.proposals.count()) == ("cancelled", "interrupted-by-max", 0)


def test_who_writes_facts_goes_before_the_rest_of_a_batch_that_shadows_write(alice, rested, emulator, settings):
    """As a turn does that is to remember something; another shadow that stores waits."""
    settings.MEMORY_WRITER = "shadow"
    made = []
    for thread in rested:
        said = Message.objects.get(thread=thread, role="user")
        proposes(emulator, *(item(said.pk, f"Prefers tea number {number} of {thread.pk}.") for number in range(4)))
        triggers.trigger(thread.pk, "waiting-max")
        run, made_of = runs._take(ShadowRun.objects.get(thread=thread).pk)
        answer = async_to_sync(asking.answer_of)(run, made_of, question.text(made_of.generation, made_of.page, ""))
        made.append((run, made_of, answer))
    asked = say(thread_of(alice), "user", "Remember that I drink milk.")
    with transaction.atomic():
        execute("LOCK TABLE memory_fact IN SHARE MODE")  # the first run is at its first fact
        first = begun(lambda: runs.finish(*made[0]), ["relation"])
        second = begun(lambda: runs.finish(*made[1]), ["advisory"])
        assert not facts_are_wanted(alice.pk)
        turn = begun(lambda: remember(asked, "Drinks milk."), ["advisory"], 2)
        assert facts_are_wanted(alice.pk)
    for worker in (first, second, turn):
        worker.join(60)
    assert [run.status for run in ShadowRun.objects.all()] == ["completed"] * 2
    # Whatever had been written before was written once more behind it.
    assert Fact.objects.earliest("pk").text == "Drinks milk."
    assert Fact.objects.count() == 9


def test_words_do_not_wait_while_proposals_wait_for_the_owners_facts(alice, rested, emulator):
    thread = rested[0]
    proposes(emulator, item(Message.objects.get(thread=thread, role="user").pk))
    triggers.trigger(thread.pk, "waiting-max")
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    answer = async_to_sync(asking.answer_of)(run, made_of, question.text(made_of.generation, made_of.page, ""))
    changing = Elsewhere(lambda: lock_facts(alice.pk))  # the owner's facts, of other conversations
    changing.began.wait(20)
    try:
        storing = begun(lambda: runs.finish(run, made_of, answer), ["advisory"])
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '3s'")
        sending.send(alice, thread.channel, "One thing more.", client_key="1")
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
        changing.finish()
        storing.join(60)
    run.refresh_from_db()
    assert (run.status, run.error, run.proposals.count()) == ("cancelled", "interrupted-by-max", 0)


def test_what_is_queued_is_dropped_and_a_request_never_goes_out_for_a_run_that_is_over(emulator, alice, rested):
    one, other = rested
    for thread in rested:
        triggers.trigger(thread.pk, "waiting-max")
    cancelling.cancel(one.pk)
    assert list(ShadowRun.objects.values_list("thread", flat=True)) == [other.pk]
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    cancelling.cancel(other.pk)
    before = len(emulator.requests())
    with pytest.raises(asking.RunIsOver):
        async_to_sync(asking.answer_of)(run, made_of, "asked")
    assert len(emulator.requests()) == before
    assert not ModelCall.objects.filter(purpose="shadow").exists()


@pytest.mark.parametrize("told", [True, False])
def test_what_became_stricter_since_it_was_read_goes_to_no_model(emulator, alice, rested, told):
    thread = rested[0]
    triggers.trigger(thread.pk, "waiting-max")
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    if told:
        lifecycle.narrow(Thread.objects.get(pk=thread.pk), acting_user=alice, category="personal")
        run.refresh_from_db()
        assert (run.status, run.error) == ("cancelled", "category-changed")
    else:
        Thread.objects.filter(pk=thread.pk).update(category="personal")
    before = len(emulator.requests())
    with pytest.raises(asking.RunIsOver):
        asking.check_level(made_of)
    with pytest.raises(asking.RunIsOver):
        async_to_sync(asking.answer_of)(run, made_of, "asked")
    assert len(emulator.requests()) == before and run.status == ("cancelled" if told else "running")


def test_a_run_whose_conversation_became_stricter_while_it_was_taken_is_cancelled(emulator, alice, rested):
    thread = rested[0]
    triggers.trigger(thread.pk, "waiting-max")
    before = len(emulator.requests())
    taking = Elsewhere(lambda: list(ShadowRun.objects.select_for_update()))  # what is read is chosen, and not taken
    taking.began.wait(20)
    draining = threading.Thread(target=lambda: (tasks.drain(), connection.close()))
    draining.start()
    wait_until_blocked()
    Thread.objects.filter(pk=thread.pk).update(category="personal")
    taking.finish()
    draining.join(60)
    run = ShadowRun.objects.get()
    assert (run.status, run.error, len(emulator.requests())) == ("cancelled", "category-changed", before)


def test_what_is_forgotten_while_a_shadow_is_asked_does_not_come_back(emulator, alice, rested):
    thread = rested[0]
    said, other = Message.objects.get(thread=thread, role="user"), say(thread, "user", "Milk, please.")
    fact = fact_row(alice, said, "Prefers tea.")
    proposes(
        emulator,
        item(other.pk),
        item(other.pk, "Likes milk."),
        item(other.pk, "Likes it.", replaces=f"f:{fact.pk}"),
        item(f"m:{said.pk}", "A friend of tea, in other words."),
    )
    triggers.trigger(thread.pk, "waiting-max")
    run, made_of = runs._take(ShadowRun.objects.get().pk)
    answer = async_to_sync(asking.answer_of)(run, made_of, question.text(made_of.generation, made_of.page, ""))
    forget(fact, writer="person", actor=alice)
    runs.finish(run, made_of, answer)
    run.refresh_from_db()
    assert (run.status, list(run.proposals.values_list("text", flat=True))) == ("completed", ["Likes milk."])
