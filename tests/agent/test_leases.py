"""One holder at a time: a lapsed lease is swept, a stalled holder that wakes writes nothing."""

import asyncio
import json
import threading

import pytest
from asgiref.sync import async_to_sync
from django.db import transaction

from agent import leases, sending, taking
from agent import runner as agent_runner
from agent.answers import end_answer
from agent.events import emit
from agent.models import TaskFrame, ToolCall, TurnEvent
from agent.registry import ToolContext
from agent.streaming import DeltaWriter
from agent.ticks import prune_turn_events, sweep_lapsed_leases
from agent.tools import dispatch_task
from agent.turn import Turn
from llm.emulator.client import text, tool_use
from maxclaw import clock
from tests.agent.world import running_world
from threads.lifecycle import create_thread
from threads.models import Message, Thread
from threads.transcript import LeaseLost, append, live_generation, lock_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def thread(alice, emulator):
    return create_thread(alice)


def say(thread, words, key):
    return sending.send(thread.owner, thread.channel, words, client_key=key)


def writes_nothing(stalled):
    """Whatever the holder of a lapsed lease does once it is awake again."""
    assert leases.renew(stalled) == (False, False)
    before = (Message.objects.count(), TurnEvent.objects.count())
    with pytest.raises(LeaseLost), transaction.atomic():
        lock_thread(stalled.thread_id, stalled.token)

    owner_id = Thread.objects.get(pk=stalled.thread_id).owner_id

    async def write_a_delta():
        writer = DeltaWriter(stalled.thread_id, owner_id, stalled.token)
        writer.add(1, text="late words")
        await writer.close()

    with pytest.raises(LeaseLost):
        async_to_sync(write_a_delta)()
    async_to_sync(Turn(stalled).run)()
    assert (Message.objects.count(), TurnEvent.objects.count()) == before


def test_two_holders_never_have_one_thread(thread):
    say(thread, "Hello", "k1")
    first = taking.take(thread.pk, "first")
    assert first is not None
    assert taking.take(thread.pk, "second") is None


def test_a_lapsed_lease_can_be_taken_and_the_old_holder_writes_nothing(thread):
    say(thread, "Hello", "k1")
    stalled = taking.take(thread.pk, "stalled")
    with clock.moved(31):
        say(thread, "Anybody there?", "k2")
        woken = taking.take(thread.pk, "second")
        assert woken is not None
        assert woken.token != stalled.token
        writes_nothing(stalled)
    assert TaskFrame.objects.order_by("id").first().end_reason == "interrupted"


def test_a_stalled_holder_that_wakes_before_anybody_swept_writes_nothing_either(thread):
    say(thread, "Hello", "k1")
    stalled = taking.take(thread.pk, "stalled")
    with clock.moved(31):
        writes_nothing(stalled)
        sweep_lapsed_leases(clock.now())
        assert TaskFrame.objects.get(pk=stalled.frame_id).end_reason == "interrupted"


def test_a_stalled_holder_that_wakes_in_mid_stream_writes_nothing_more(emulator, thread, settings):
    """The stream is held open; meanwhile the lease lapses and somebody else answers; then the stream goes on."""
    emulator.answer(text("Words of the stalled holder."), hold="stalled")
    emulator.answer(text("Words of the new holder."))

    async def scenario():
        async with running_world(emulator) as world:
            await world.say(thread, "Hello")
            await world.held()
            with clock.moved(31):
                await world.until(lambda: taking.sweep(thread.pk))
                other = await world.until(lambda: say(thread, "Again", "again") and taking.take(thread.pk, "other"))
                emulator.release("stalled")
                turn = Turn(other)
                await turn.run()
                await world.rest(thread)
            return await world.rows(thread)

    rows = async_to_sync(scenario)()
    assert "Words of the stalled holder." not in [row.text for row in rows]
    assert rows[-1].text == "Words of the new holder."


def test_a_stalled_holder_that_wakes_in_a_tool_starts_no_task(thread):
    say(thread, "Hello", "k1")
    stalled = taking.take(thread.pk, "stalled")
    context = ToolContext(thread.pk, thread.owner_id, stalled.frame_id, 1, stalled.token)
    with clock.moved(31):
        assert taking.sweep(thread.pk)
    with pytest.raises(LeaseLost):
        dispatch_task(context, {"title": "Late", "instructions": "Do it all the same"})
    assert not Thread.objects.filter(kind=Thread.Kind.TASK).exists()


def test_the_sentence_of_a_swept_turn_is_in_the_owners_language(thread, alice):
    alice.language = "zh-hans"
    alice.save()
    say(thread, "Hello", "k1")
    taking.take(thread.pk, "crashed")
    with clock.moved(31):
        assert taking.sweep(thread.pk)
    notice = Message.objects.get(meta__notice="interrupted")
    assert any("\u4e00" <= sign <= "\u9fff" for sign in notice.text)


def test_the_sweep_answers_open_calls_with_a_placeholder_and_keeps_streamed_words(thread):
    say(thread, "Hello", "k1")
    holding = taking.take(thread.pk, "crashed")
    with transaction.atomic():
        locked = lock_thread(thread.pk, holding.token)
        generation = live_generation(locked)
        called = append(locked, generation, "assistant", meta={"state": "streaming"})
        called.generation = generation
        wire = json.dumps([{"type": "tool_use", "id": "toolu_1", "name": "x", "input": {}}], separators=(",", ":"))
        end_answer(called, text="", wire=wire, state="complete")
        ToolCall.objects.create(
            message=called, thread=thread, owner=thread.owner, call_id="toolu_1", tool="x", status="running"
        )
        streaming = append(locked, generation, "assistant", meta={"state": "streaming"})
        emit(thread.pk, thread.owner_id, "delta", {"message": streaming.pk, "text": "half an ans", "thinking": ""})
    with clock.moved(31):
        sweep_lapsed_leases(clock.now())
    call = ToolCall.objects.get()
    assert call.status == "interrupted"
    assert call.result.is_error
    assert "may have run" in call.result.text
    streaming.refresh_from_db()
    assert streaming.text == "half an ans"
    assert json.loads(streaming.wire) == [{"type": "text", "text": "half an ans"}]
    thread.refresh_from_db()
    assert (thread.state, thread.lease_token) == ("idle", None)


def test_the_sweep_leaves_living_turns_alone(thread):
    say(thread, "Hello", "k1")
    taking.take(thread.pk, "alive")
    with clock.moved(29):
        sweep_lapsed_leases(clock.now())
    thread.refresh_from_db()
    assert thread.state == Thread.State.RUNNING


def test_renewal_holds_on_and_reads_stop_again(thread):
    say(thread, "Hello", "k1")
    holding = taking.take(thread.pk, "alive")
    with clock.moved(25):
        assert leases.renew(holding) == (True, False)
    TaskFrame.objects.update(stop_asked=True)
    with clock.moved(50):
        assert leases.renew(holding) == (True, True)


def test_events_are_pruned_after_a_day_and_numbers_go_on(thread):
    with transaction.atomic():
        lock_thread(thread.pk)
        for _number in range(3):
            emit(thread.pk, thread.owner_id, "state", {})
    with clock.moved(86_500):
        prune_turn_events(clock.now())
        assert list(TurnEvent.objects.values_list("number", flat=True)) == [3]
        with transaction.atomic():
            lock_thread(thread.pk)
            assert emit(thread.pk, thread.owner_id, "state", {}) == 4


def test_a_thread_whose_taking_failed_once_is_taken_without_another_ring(emulator, alice, monkeypatch):
    monkeypatch.setattr(agent_runner, "TAKE_AGAIN_SECONDS", (0.01,))
    take, failures = taking.take, [OSError("the database is away")]

    def fails_once(*given):
        if failures:
            raise failures.pop()
        return take(*given)

    monkeypatch.setattr(taking, "take", fails_once)

    async def scenario():
        async with running_world(emulator) as world:
            return await world.ask(await world.new_thread(alice), "Hello")

    assert [row.role for row in async_to_sync(scenario)()] == ["user", "assistant"]
    assert not failures


@pytest.mark.parametrize("fails", [True, False])
def test_what_is_being_taken_while_the_runner_stops_is_left_to_others(emulator, alice, monkeypatch, fails):
    """Whether the taking has failed and is to be tried again, or is going on: no turn goes on behind the stop."""
    monkeypatch.setattr(agent_runner, "TAKE_AGAIN_SECONDS", (0.5,))
    take, begun, stopping = taking.take, threading.Event(), threading.Event()

    def slowly(*given):
        if begun.is_set():
            return take(*given)
        begun.set()
        if fails:
            raise OSError("the database is away")
        stopping.wait(30)
        return take(*given)

    monkeypatch.setattr(taking, "take", slowly)
    emulator.answer(text("Too late."), times=-1)

    async def scenario():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.say(thread, "Hello")
            await asyncio.to_thread(begun.wait, 30)
            asyncio.get_running_loop().call_later(0.1, stopping.set)  # when the block is being left
        return thread

    thread = async_to_sync(scenario)()
    thread.refresh_from_db()
    assert thread.state == Thread.State.IDLE
    assert not emulator.requests(path="/v1/messages")


def test_a_stop_whose_ring_was_lost_is_found_before_the_first_request(emulator, thread):
    say(thread, "Hello", "k1")
    holding = taking.take(thread.pk, "alive")
    TaskFrame.objects.update(stop_asked=True)
    async_to_sync(Turn(holding).run)()
    assert TaskFrame.objects.get().end_reason == "stopped"
    assert not emulator.requests(path="/v1/messages")


def test_a_tool_round_goes_on_where_a_question_was_answered_by_another_process(emulator, alice):
    emulator.answer(tool_use("ask_user_question", {"question": "Which?"}))
    emulator.answer(text("Thanks."))

    async def first():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.ask(thread, "Ask me")
            return thread

    async def second(thread):
        async with running_world(emulator) as world:
            return await world.ask(thread, "That one")

    asked = async_to_sync(first)()
    assert async_to_sync(second)(asked)[-1].text == "Thanks."
