"""Tools run within their time limits, and at once only where they say that this is safe."""

import asyncio
import threading

import pytest
from asgiref.sync import async_to_sync

from agent.models import ToolCall
from agent.registry import ToolContext, ToolOutput, tool, unregister
from llm.emulator.client import text, tool_use
from maxclaw.database_threads import close_all
from tests.agent.world import running_world
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING = {"type": "object", "properties": {}}
GIVEN_UP = "waits did not end within 0.05 seconds and was given up. It may have had effects. Ask for less at once."


@pytest.fixture
def waits():
    """Registers the tool `waits`: `waits(function, **settings)`."""

    def add(function, **settings):
        tool(name="waits", description="Waits.", parameters=NOTHING, **settings)(function)

    yield add
    unregister("waits")


def play(emulator, alice, calls):
    emulator.answer(*[tool_use("waits", {}) for _call in range(calls)])
    emulator.answer(text("Done."))

    async def run():
        async with running_world(emulator) as world:
            return await world.ask(await world.new_thread(alice), "Wait")

    return async_to_sync(run)()


def test_a_coroutine_that_takes_too_long_is_cancelled_and_the_model_told(emulator, alice, waits):
    ended = []

    async def forever(_context: ToolContext, _arguments: dict) -> ToolOutput:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        raise AssertionError

    waits(forever, time_limit_seconds=0.05)
    rows = play(emulator, alice, 1)
    assert [row.text for row in rows] == ["Wait", "", GIVEN_UP, "Done."]
    assert (rows[2].is_error, ended) == (True, ["cancelled"])
    assert ToolCall.objects.get().status == ToolCall.Status.FAILED


def test_database_work_that_takes_too_long_is_left_alone_and_what_it_says_is_dropped(emulator, alice, waits):
    let_go, said = threading.Event(), threading.Event()

    def held(_context: ToolContext, _arguments: dict) -> ToolOutput:
        let_go.wait(20)
        said.set()
        return ToolOutput("too late")

    waits(held, time_limit_seconds=0.05)
    rows = play(emulator, alice, 1)
    assert [row.text for row in rows] == ["Wait", "", GIVEN_UP, "Done."]
    let_go.set()
    assert said.wait(20)
    assert not Message.objects.filter(text="too late").exists()


def test_tools_that_are_safe_to_run_at_once_do(emulator, alice, waits):
    meeting = asyncio.Barrier(3)

    async def meets(_context: ToolContext, _arguments: dict) -> ToolOutput:
        # Each would wait for ever for the two others, were they not there.
        await meeting.wait()
        return ToolOutput("met")

    waits(meets, parallel_safe=True, time_limit_seconds=20)
    assert [row.text for row in play(emulator, alice, 3) if row.role == "tool"] == ["met"] * 3


def test_tools_that_are_not_run_one_after_the_other_in_the_order_of_their_calls(emulator, alice, waits):
    steps = []

    async def steps_aside(context: ToolContext, _arguments: dict) -> ToolOutput:
        steps.append(("begins", context.call_id))
        await asyncio.sleep(0)
        steps.append(("ends", context.call_id))
        return ToolOutput("one")

    waits(steps_aside)
    play(emulator, alice, 2)
    first, second = ToolCall.objects.order_by("id").values_list("id", flat=True)
    assert steps == [("begins", first), ("ends", first), ("begins", second), ("ends", second)]


def test_a_lease_is_renewed_while_more_tools_run_than_there_are_threads(emulator, alice, waits, settings):
    settings.DATABASE_THREADS, settings.LEASE_RENEW_SECONDS = 4, 0.05
    let_go, begun = threading.Event(), []

    def held(context: ToolContext, _arguments: dict) -> ToolOutput:
        begun.append(context.call_id)
        let_go.wait(20)
        return ToolOutput("done")

    waits(held, parallel_safe=True, time_limit_seconds=20)
    emulator.answer(*[tool_use("waits", {})] * 6)
    emulator.answer(text("All done."))

    async def run():
        close_all()
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            try:
                await world.say(thread, "Wait")
                await world.until(lambda: begun)
                until = await world.until(lambda: Thread.objects.get(pk=thread.pk).lease_until)
                await world.until(lambda: Thread.objects.get(pk=thread.pk).lease_until > until)
                assert len(begun) <= 2
            finally:
                let_go.set()
            await world.rest(thread)
            return await world.rows(thread)

    rows = async_to_sync(run)()
    assert [row.text for row in rows if row.role == "tool"] == ["done"] * 6
    assert rows[-1].text == "All done."


def test_stop_ends_a_tool_that_runs_and_leaves_no_call_without_its_result(emulator, alice, waits):
    begun, ended = [], []

    async def forever(context: ToolContext, _arguments: dict) -> ToolOutput:
        begun.append(context.call_id)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        raise AssertionError

    waits(forever, time_limit_seconds=600)
    emulator.answer(tool_use("waits", {}), tool_use("waits", {}))
    emulator.answer(text("Something else, then."))

    async def run():
        async with running_world(emulator) as world:
            thread = await world.new_thread(alice)
            await world.say(thread, "Wait")
            await world.until(lambda: begun)
            await world.stop(thread, await world.running_frame(thread))
            await world.rest(thread)
            assert ended == ["cancelled"]
            return await world.ask(thread, "Never mind")

    rows = async_to_sync(run)()
    assert len(begun) == 1  # the second call waited for the first, and never ran
    assert [(call.status, call.result_id is not None) for call in ToolCall.objects.order_by("id")] == [
        ("interrupted", True)
    ] * 2
    assert [row.meta.get("notice") for row in rows if row.role == "event"] == ["stopped"]
    assert rows[-1].text == "Something else, then."
    *_before, results, words = emulator.bodies()[-1]["messages"]
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result"]
    assert [block["text"] for block in words["content"]] == ["Never mind"]
