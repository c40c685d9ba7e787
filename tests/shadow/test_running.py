"""When runs are queued and taken, how many at a time, and what failures cost."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync
from django.core.management import call_command
from django.db import connection, transaction
from django_q.models import OrmQ

from agent import compaction, prefix, sending
from agent.bell import ring
from agent.models import InboxItem, Level
from llm import budgets, catalog, router
from llm.emulator.client import text, tool_use
from llm.models import ModelCall, RequestHeader
from maxclaw import clock
from maxclaw.database_threads import in_database
from memory.tasks import came_to_rest
from shadow import asking, attempts, cursors, draining, tasks, ticks, triggers
from shadow.models import ShadowFactProposal, ShadowRun
from tests.maxclaw.running import wait_until
from tests.shadow.playing import ASKED, LONG, drain, play, proposes, shadow
from tests.shadow.records import run_row
from tests.threads.records import exchange, live, thread_of
from threads import lifecycle
from threads.models import Generation, Message, Thread
from threads.signals import SettledReason

pytestmark = pytest.mark.django_db(transaction=True)


def drains():
    return [task for task in OrmQ.objects.all() if task.task["func"] == "shadow.tasks.drain"]


def statuses(thread):
    return list(ShadowRun.objects.filter(thread=thread).order_by("pk").values_list("status", flat=True))


def read_thread(owner, words="I prefer tea."):
    """A conversation at rest with one exchange, which no request stands behind."""
    thread = thread_of(owner)
    exchange(thread, words)
    return thread


@pytest.fixture
def begun(db):
    cursors.initialize()


def cut(emulator):
    emulator.answer(text("I propose to"), stop_reason="max_tokens", match=ASKED)


def calls_another_tool(emulator):
    emulator.answer(tool_use("search_memory", {"query": "tea"}), match=ASKED)


def drops(emulator):
    emulator.answer(text("I propose to remember a thing or two."), match=ASKED)
    emulator.fault("drop", after_deltas=2, match=ASKED)


def is_overloaded(emulator):
    emulator.fault("status", status=529, match=ASKED)


FAILURES = (cut, calls_another_tool, drops, is_overloaded)


def tokens_of(calls):
    return sum(getattr(call, name) or 0 for call in calls for name in budgets.TOKEN_COLUMNS)


@pytest.mark.parametrize("path", ["hot", "cold"])
def test_three_failures_in_a_row_pause_a_generation_and_each_is_charged(emulator, alice, path):
    """Whatever fails. What a server told of no use of, as one that is overloaded, stands in the ledger all the same."""

    async def scenario(world):
        threads = [await world.new_thread(alice) for _failure in FAILURES]
        await asyncio.gather(*(world.ask(thread, LONG) for thread in threads))
        return threads

    cursors.initialize()
    threads = play(emulator, scenario) if path == "hot" else [read_thread(alice) for _failure in FAILURES]
    for thread, fail in zip(threads, FAILURES, strict=True):
        calls = ModelCall.objects.filter(purpose="shadow", thread_id=thread.pk).order_by("pk")
        for number in range(4):
            if number < 3:
                fail(emulator)
            spent = budgets.spent_today(alice).tokens
            run = shadow(thread)
            told = tokens_of([calls[number]]) if number < 3 else 0
            assert budgets.spent_today(alice).tokens - spent == told
            assert (told > 0) is (number < 3 and fail is not is_overloaded)
        assert [(one.status, one.path) for one in thread.shadow_runs.all()] == [("failed", path)] * 3
        assert [one.call for one in thread.shadow_runs.order_by("pk")] == [call.pk for call in calls]
        assert all(call.outcome and call.reserved_tokens for call in calls)
        assert [call.cost is not None for call in calls] == [fail is not is_overloaded] * 3
        with clock.moved(6 * 3600 - 60):
            assert shadow(thread) == run
        fail(emulator)
        with clock.moved(6 * 3600 + 60):
            assert shadow(thread).status == "failed"
        assert calls.all().count() == 4


def test_an_empty_answer_is_an_answer_and_ends_a_row_of_failures(emulator, alice, begun):
    thread = read_thread(alice)
    for _failure in range(2):
        cut(emulator)
        assert shadow(thread).error == "cut"
    emulator.answer(text("nothing"), match=ASKED)
    assert shadow(thread).status == "completed"
    assert not ShadowFactProposal.objects.exists()
    assert cursors.reached(live(thread)) == Message.objects.filter(thread=thread).latest("pk").pk
    shadow(thread)  # what was read is read
    assert statuses(thread) == ["failed", "failed", "completed"]
    exchange(thread)
    cut(emulator)
    assert shadow(thread).error == "cut"
    assert shadow(thread).status == "completed"


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_turn_that_begins_while_a_run_waits_for_its_answer_is_not_delayed(emulator, alice, elsewhere):
    """In another conversation, and in the same one when it is not the person who begins it."""

    async def scenario(world):
        threads = [await world.new_thread(alice) for _number in range(2)]
        await world.ask(threads[0], LONG)
        proposes(emulator, hold="asked")
        await in_database(triggers.trigger, threads[0].pk, "turn-failed")
        shadows = asyncio.create_task(drain())
        await world.held()
        emulator.answer(text("At once."))
        if elsewhere:
            await world.ask(threads[1], "How are you?")
        else:
            await in_database(deliver_result, threads[0])
            await world.until(lambda: Message.objects.filter(thread=threads[0], text="At once.").exists())
        rows = await in_database(lambda: list(Message.objects.filter(text="At once.")))
        held = emulator.state()["held"]
        running = await in_database(lambda: statuses(threads[0]))
        emulator.release("asked")
        await shadows
        return rows, held, running

    rows, held, running = play(emulator, scenario)
    assert (len(rows), held, running) == (1, ["asked"], ["running"])
    assert [run.status for run in ShadowRun.objects.all()] == ["completed"]


def deliver_result(thread):
    """A task's result, which begins a turn of an idle conversation."""
    with transaction.atomic():
        InboxItem.objects.create(
            thread=thread, owner_id=thread.owner_id, level=Level.TASK, source="task", text="The task has finished."
        )
        ring("wake", {"thread": thread.pk})


def test_one_drain_goes_on_at_a_time_and_takes_what_is_queued_meanwhile(emulator, alice, begun):
    """However many triggers there are, one worker is busy with them."""
    first, later = read_thread(alice), read_thread(alice)
    proposes(emulator, hold="first")
    triggers.trigger(first.pk, "waiting-max")
    done = []

    def work():
        done.append(tasks.drain())
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    emulator.wait_for_held()
    triggers.trigger(later.pk, "waiting-max")
    assert tasks.drain() == 0  # another worker's: it goes, having said so
    wait_until(lambda: statuses(later) == ["completed"], what="the run that was queued meanwhile")
    assert statuses(first) == ["running"]
    emulator.release("first")
    worker.join(60)
    assert done == [2]
    # The claim went with it.
    exchange(first)
    assert shadow(first).status == "completed"


def test_what_is_left_after_its_time_is_another_drains(emulator, alice, begun):
    threads = [read_thread(alice) for _number in range(2)]
    for thread in threads:
        triggers.trigger(thread.pk, "waiting-max")
    before = len(drains())
    assert async_to_sync(draining.run_waiting)(deadline=clock.monotonic()) == 0
    assert [statuses(thread) for thread in threads] == [["queued"], ["queued"]]
    assert draining.drain(seconds=0.0) == 0
    assert len(drains()) == before + 1


def test_a_drain_goes_where_the_runs_of_others_leave_no_room(alice, begun):
    triggers.trigger(read_thread(alice).pk, "waiting-max")
    for _number in range(draining.AT_ONCE):
        run_row(read_thread(alice), status="running")
    before = len(drains())
    assert draining.drain(seconds=5.0) == 0
    assert len(drains()) == before  # it did not stay until its time was over


def test_a_worker_runs_sixteen_at_a_time(emulator, alice, begun):
    for _number in range(18):
        triggers.trigger(read_thread(alice).pk, "waiting-max")
    emulator.answer(text("nothing"), match=ASKED, times=18, hold="all")
    done = []

    def work():
        done.append(tasks.drain())
        connection.close()

    worker = threading.Thread(target=work)
    worker.start()
    held = emulator.wait_for_held(16, seconds=30)
    assert len(held) == 16
    assert ShadowRun.objects.filter(status="running").count() == 16
    while worker.is_alive():
        emulator.release()
        worker.join(0.05)
    assert done == [18]
    assert ShadowRun.objects.filter(status="completed").count() == 18


def test_a_busy_conversation_keeps_its_trigger_until_the_turn_ends(emulator, alice, begun):
    thread = read_thread(alice)
    triggers.trigger(thread.pk, SettledReason.TURN_BOUNDARY)
    assert statuses(thread) == []  # nothing was queued meanwhile
    busy = {"state": "running", "lease_token": "12345678-1234-5678-1234-567812345678", "lease_until": clock.now()}
    Thread.objects.filter(pk=thread.pk).update(**busy)
    triggers.trigger(thread.pk, SettledReason.TASK_ENDED)
    triggers.trigger(thread.pk, SettledReason.GENERATION_ENDED)
    assert statuses(thread) == ["queued"]
    assert drains() == []
    assert tasks.drain() == 0
    Thread.objects.filter(pk=thread.pk).update(state="idle", lease_token=None, lease_until=None)
    came_to_rest(thread.pk, SettledReason.TURN_BOUNDARY.value)  # as a worker hears of a turn's end
    assert len(drains()) == 1
    assert tasks.drain() == 1
    assert [run.reason for run in ShadowRun.objects.all()] == ["task-ended"]
    lifecycle.archive(thread, acting_user=alice)
    assert ShadowRun.objects.latest("pk").reason == "thread-archived"


def test_the_tick_queues_by_age_by_expiry_and_by_what_ended(emulator, alice):
    async def scenario(world):
        threads = [await world.new_thread(alice) for _number in range(2)]
        await world.ask(threads[0], LONG)
        await world.ask(threads[1], "Short.")
        return threads

    long, short = play(emulator, scenario)
    cursors.initialize()

    def due(seconds):
        ShadowRun.objects.all().delete()
        with clock.moved(seconds):
            triggers.queue_idle(clock.now(), thorough=False)
        return set(ShadowRun.objects.values_list("thread", flat=True))

    # Five minutes, less 180 seconds; a few words alone wait for the idle minutes.
    assert due(110) == set()
    assert due(125) == {long.pk}
    assert due(302) == set()  # run out: nothing to hurry for
    assert due(20 * 60 + 5) == {long.pk, short.pk}
    Generation.objects.filter(thread=short).update(ended=clock.now(), end_reason="manual")
    assert due(1) == {short.pk}
    old = clock.now() - timedelta(days=3)
    Thread.objects.filter(pk=short.pk).update(updated=old)
    assert due(1) == set()
    with clock.moved(1):
        assert triggers.queue_idle(clock.now(), thorough=True) == 1


def test_one_conversation_that_cannot_be_looked_at_keeps_no_other_from_being_read(
    alice, bob, begun, monkeypatch, caplog
):
    broken, whole, last = read_thread(alice), read_thread(bob), read_thread(alice)
    Thread.objects.filter(pk=last.pk).update(updated=datetime.max.replace(tzinfo=UTC))
    cursors.initialize()
    is_due = triggers._is_due

    def fails_once(thread, *rest):
        if thread == broken:
            raise OverflowError("date value out of range")
        return is_due(thread, *rest)

    monkeypatch.setattr(triggers, "_is_due", fails_once)
    with clock.moved(20 * 60 + 5):
        assert triggers.queue_idle(clock.now(), thorough=False) == 1
    assert statuses(whole) == ["queued"]
    assert f"thread {broken.pk} is due" in caplog.text


def test_a_shadows_reading_moves_what_is_due_before_the_cache_runs_out(emulator, alice):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        return thread

    thread = play(emulator, scenario)
    call = ModelCall.objects.get()
    first = prefix.expires(call)
    with clock.moved(130):
        emulator.move_clock(130)
        assert shadow(thread).path == "hot"
    moved = prefix.expires(call) - first
    assert moved >= timedelta(seconds=130)
    assert compaction.IDLE_BEFORE_EXPIRY < triggers.BEFORE_EXPIRY


def test_runs_of_workers_that_are_gone_end_and_the_tick_asks_for_a_drain_only_where_something_waits(alice):
    thread = read_thread(alice)
    ticks.shadow_tick(clock.now())
    assert drains() == []
    run = run_row(thread, status="running")
    with clock.moved(attempts.RUN_SECONDS + 1):
        ticks.shadow_tick(clock.now())
        run.refresh_from_db()
        assert run.status == "running"
    # The next tick but one after the last moment at which its worker could have been at it.
    with clock.moved(asking.CALL_SECONDS + 120):
        ticks.shadow_tick(clock.now())
        run.refresh_from_db()
        assert (run.status, run.error) == ("failed", "worker-lost")
    exchange(thread)
    with clock.moved(attempts.CLAIM.total_seconds() + 1500):
        ticks.shadow_tick(clock.now())
    assert len(drains()) == 1


def test_the_call_of_a_cancelled_run_whose_worker_is_gone_ends(alice):
    thread = read_thread(alice)
    header = RequestHeader.objects.create(sha256="0" * 64, text="{}")
    calls = [
        ModelCall.objects.create(purpose=purpose, owner=alice, thread_id=thread.pk, header=header, max_tokens=1)
        for purpose in ("shadow", "turn")
    ]
    run_row(thread, status="cancelled", call=calls[0].pk)
    outcomes = ModelCall.objects.order_by("pk").values_list("outcome", flat=True)
    attempts.sweep(clock.now())
    assert list(outcomes) == ["", ""]
    attempts.sweep(clock.now() + attempts.CLAIM + timedelta(minutes=1))
    assert list(outcomes.all()) == ["interrupted", ""]


def test_the_command_queues_what_is_due_and_runs_it(emulator, alice, begun, capsys):
    thread = read_thread(alice)
    with clock.moved(20 * 60 + 5):
        call_command("shadow_tick")
        call_command("shadow_tick")
    assert capsys.readouterr().out.splitlines() == ["Runs that asked a model: 1.", "Runs that asked a model: 0."]
    assert statuses(thread) == ["completed"]


def test_no_run_begins_while_words_of_the_persons_wait(emulator, alice, begun):
    thread = read_thread(alice)
    sending.send(alice, thread.channel, "And one thing more.", client_key="1")
    before = len(emulator.requests())
    for _tick in range(2):
        triggers.trigger(thread.pk, "waiting-max")
        assert statuses(thread) == ["queued"]
        assert tasks.drain() == 0
    assert len(emulator.requests()) == before
    assert statuses(thread) == []
    InboxItem.objects.all().delete()
    assert shadow(thread).status == "completed"


def test_what_cannot_be_read_fails_its_run_and_pauses_the_generation(emulator, alice, begun, settings):
    thread = read_thread(alice)
    settings.MAXCLAW_CATALOG = "/nowhere/catalog.toml"
    for _trigger in range(4):
        shadow(thread)
    assert [(run.status, run.error) for run in ShadowRun.objects.filter(generation=live(thread))] == [
        ("failed", "ConfigurationError")
    ] * 3
    settings.MAXCLAW_CATALOG = ""
    assert shadow(thread).status == "failed"  # paused
    with clock.moved(6 * 3600 + 60):
        assert shadow(thread).status == "completed"


def test_a_failed_question_leaves_the_conversations_model_as_healthy_as_it_was(emulator, alice):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        return thread

    thread = play(emulator, scenario)
    emulator.fault("status", status=529, match=ASKED)
    run = shadow(thread)
    assert (run.status, run.path, run.error) == ("failed", "hot", "transient")
    assert router.is_healthy(catalog.get(run.model))


def test_without_budget_nothing_is_asked_and_nothing_failed(emulator, alice, begun, settings):
    settings.BUDGET_USER_TOKENS = 10
    threads = [read_thread(alice), read_thread(alice)]
    for thread in threads:
        triggers.trigger(thread.pk, "waiting-max")
    before = len(emulator.requests())
    assert tasks.drain() == 0
    assert len(emulator.requests()) == before
    waiting = ShadowRun.objects.all()
    assert [(run.status, run.error) for run in waiting] == [("queued", "no-budget")] * 2
    [until] = {run.not_before for run in waiting}
    # The ticks of the day leave them alone, and so do other triggers.
    asked_for = len(drains())
    ticks.shadow_tick(clock.now())
    assert len(drains()) == asked_for and not triggers.waiting().exists()
    assert shadow(threads[0]).not_before == until
    assert waiting.all().count() == 2
    settings.BUDGET_USER_TOKENS = 10**9
    with clock.moved((until - clock.now()).total_seconds() + 60):
        emulator.move_clock(86_400)
        assert tasks.drain() == 2
    assert {(run.status, run.error, run.not_before) for run in waiting.all()} == {("completed", "", None)}


def test_without_a_model_for_the_category_a_run_waits_until_there_is_one(emulator, alice, begun, settings, tmp_path):
    file = tmp_path / "catalog.toml"
    file.write_text("[models.emulator-light-all]\nreads = []\n")
    settings.MAXCLAW_CATALOG = str(file)
    thread = thread_of(alice, category="personal")
    exchange(thread, "I prefer tea.")
    run = shadow(thread)
    assert (run.status, run.error, run.not_before > clock.now() + timedelta(hours=23)) == ("queued", "no-model", True)
    before = len(drains())
    ticks.shadow_tick(clock.now())
    assert shadow(thread) == run
    assert len(drains()) == before + 1  # the trigger's
    settings.MAXCLAW_CATALOG = ""
    ticks.shadow_tick(clock.now())
    assert len(drains()) == before + 2
    assert tasks.drain() == 1
    assert statuses(thread) == ["completed"]
