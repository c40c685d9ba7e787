"""Renewing a context at rest, just before its cache runs out, without a lease."""

import asyncio
from datetime import timedelta
from multiprocessing import Value
from queue import Queue

import pytest
from django_q.brokers import get_broker
from django_q.models import OrmQ, Success
from django_q.monitor import monitor
from django_q.signing import SignedPackage
from django_q.tasks import async_task
from django_q.worker import worker

from agent import compaction, summarizing
from llm.emulator.client import text
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.database_threads import in_database
from maxclaw.schedule import TICK_FUNCTION
from tests.agent.renewing import ASKED, LONG, compactions, generations, play, summary_text

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_large_resting_context_is_due_just_before_its_cache_runs_out(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text("Yes."), times=-1)
    half = LONG[: len(LONG) // 2]

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, half)
        return thread

    thread = play(emulator, scenario)
    now = clock.now()
    assert compaction.idle_due(now) == []
    assert compaction.idle_due(now + timedelta(seconds=200)) == [thread.pk]
    assert compaction.idle_due(now + timedelta(seconds=301)) == []
    small = play(emulator, lambda world: world.new_thread(alice))
    assert small.pk not in compaction.idle_due(now + timedelta(seconds=200))


def test_it_commits_only_if_nobody_spoke_meanwhile(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text(summary_text()), match=ASKED, hold="summary", times=2)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG[: len(LONG) // 2])
        idle = asyncio.create_task(compaction.compact_idle(thread.pk))
        await world.held()
        await world.ask(thread, "Meanwhile")
        emulator.release("summary")
        late = await idle
        before = await in_database(generations, thread)
        idle = asyncio.create_task(compaction.compact_idle(thread.pk))
        await world.held()
        emulator.release("summary")
        return late, before, await idle, await in_database(generations, thread)

    late, before, done, after = play(emulator, scenario)
    assert (late, len(before)) == (False, 1)
    assert (done, len(after)) == (True, 2)
    assert after[0].end_reason == "idle"


def test_a_failure_in_the_background_leaves_the_healthy_context(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG[: len(LONG) // 2])
        emulator.fault("status", status=529, match=ASKED)
        return await compaction.compact_idle(thread.pk), await in_database(generations, thread)

    done, only = play(emulator, scenario)
    assert (done, len(only)) == (False, 1)


def test_a_spent_budget_leaves_it_too(emulator, alice, small_budget, roomy_messages, settings):
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG[: len(LONG) // 2])
        settings.BUDGET_USER_TOKENS = 1
        return await compaction.compact_idle(thread.pk), await in_database(generations, thread)

    done, only = play(emulator, scenario)
    assert (done, len(only)) == (False, 1)


def test_two_workers_at_once_ask_once(emulator, alice, small_budget, roomy_messages):
    emulator.answer(text(summary_text()), match=ASKED, hold="summary", times=-1)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG[: len(LONG) // 2])
        # Both read the thread before either asks.
        both = [await in_database(compaction.gather, thread.pk) for _worker in range(2)]
        asking = [asyncio.create_task(summarizing.summarize(one, background=True)) for one in both]
        await world.held()
        late, _pending = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        emulator.release("summary")
        return len(late), [made is not None for made in await asyncio.gather(*asking)]

    late, made = play(emulator, scenario)
    assert (late, sorted(made)) == (1, [False, True])
    assert ModelCall.objects.filter(purpose="compaction").count() == 1


COMPACT = "agent.tasks.compact_idle"


def work_off(*functions):
    """What the queue's worker does with the tasks that are queued for some functions; it leaves the others."""
    broker, results = get_broker(), Queue()
    for queued in OrmQ.objects.order_by("id"):
        task = SignedPackage.loads(queued.payload)
        if task["func"] in functions:
            # One each: a worker ends after a task when its process has grown, and that of all tests has.
            tasks: Queue[object] = Queue()
            tasks.put({**task, "ack_id": queued.pk})
            tasks.put("STOP")
            worker(tasks, results, Value("f", -1))
    results.put("STOP")
    monitor(results, broker)


def test_from_the_tick_through_the_queue_a_resting_context_is_renewed_once(
    emulator, alice, small_budget, roomy_messages
):
    emulator.answer(text(summary_text()), match=ASKED, times=-1)
    emulator.answer(text("Yes."), times=-1)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG[: len(LONG) // 2])
        return thread

    thread = play(emulator, scenario)

    def ticks():
        async_task(TICK_FUNCTION)
        work_off(TICK_FUNCTION)
        return sum(SignedPackage.loads(queued.payload)["func"] == COMPACT for queued in OrmQ.objects.all())

    assert ticks() == 0
    with clock.moved(200):
        # The worker is late: a second tick finds the same thread due.
        assert (ticks(), ticks()) == (1, 2)
        work_off(COMPACT)
        later = ticks()
    done = Success.objects.filter(func=COMPACT).order_by("started")
    assert [(task.args, task.result) for task in done] == [((thread.pk,), True), ((thread.pk,), False)]
    first, second = generations(thread)
    assert (first.end_reason, second.ended) == ("idle", None)
    assert compactions() == [("emulator-main", "complete")]
    assert later == 0
