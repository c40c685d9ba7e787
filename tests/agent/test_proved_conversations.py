"""Whatever befalls a conversation, in whatever order, every request that its turns made is proved from the record: by
the real loop, over HTTP, with the faults, stops and fallbacks that a server meets."""

import asyncio
import hashlib

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st

from agent import revising
from agent.refusals import Refused
from agent.registry import ToolContext, ToolOutput, tool, unregister
from llm import catalog, router
from llm.emulator.client import text, thinking, tool_use
from llm.models import ModelCall
from maxclaw.database_threads import in_database
from tests.agent.test_fallback import PALETTE
from tests.agent.test_model_errors import REFUSED_THINKING
from tests.agent.world import running_world
from threads.models import Message, Thread
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)

ACTIONS = ("say", "work", "fall back", "stop a tool", "stop an answer", "refuse thinking", "rewind", "undo", "fork")
# Any script, NUL among it; what people type has lone surrogates too, which no model's JSON carries.
SAID = st.text(st.characters(exclude_categories=()), max_size=30)
HEARD = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | HEARD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(HEARD, inner, max_size=3),
    max_leaves=6,
)
STEP = st.fixed_dictionaries(
    {
        "who": st.integers(0, 3),
        "row": st.integers(0, 50),
        "said": SAID,
        "heard": HEARD,
        "inputs": st.lists(JSON, min_size=1, max_size=3),
    }
)


@pytest.fixture
def tools():
    """`look` says what it got, `waits` goes on until it is stopped; yields the calls of the latter that began."""
    began: list[int] = []

    @tool(name="look", description="Looks.", parameters={"type": "object"}, parallel_safe=True)
    def look(_context: ToolContext, arguments: dict) -> ToolOutput:
        return ToolOutput(f"Seen: {arguments}")

    @tool(name="waits", description="Waits.", parameters={"type": "object"})
    async def waits(context: ToolContext, _arguments: dict) -> ToolOutput:
        began.append(context.call_id)
        await asyncio.Event().wait()
        raise AssertionError

    yield began
    unregister("look")
    unregister("waits")


@pytest.fixture
def two_models(settings, tmp_path):
    file = tmp_path / "catalog.toml"
    file.write_text(PALETTE)
    settings.MAXCLAW_CATALOG = str(file)
    settings.MODEL_RETRIES = 0


class Played:
    """Conversations as they go on, and the digests of all that the models received."""

    def __init__(self, world, thread, began):
        self.world, self.threads, self.began = world, [thread], began
        self.received = []

    async def step(self, action, step):
        """One thing that happens to one of the conversations."""
        thread = self.threads[step["who"] % len(self.threads)]
        router.forget()
        heard = text(f"Heard {step['heard']}")
        looks = [tool_use("look", {"value": value}) for value in step["inputs"]]
        emulator = self.world.emulator
        match action:
            case "rewind" | "fork":
                await in_database(self._go_back, action, thread, step["row"])
                return
            case "undo":
                await in_database(self._try, revising.undo_rewind, thread.owner, thread.channel)
                return
            case "stop an answer":
                emulator.fault("stall", after_deltas=1 + step["row"] % 3, name="stalled")
                emulator.answer(thinking("Hm."), text("one two three four five"))
            case "stop a tool":
                emulator.answer(thinking("Both."), heard, looks[0], tool_use("waits"))
            case "work" | "fall back":
                if action == "fall back":
                    emulator.fault("status", status=529, match={"model": "emulator-main"})
                emulator.answer(thinking("I look."), heard, *looks)
            case "refuse thinking":
                error = {"type": "invalid_request_error", "message": REFUSED_THINKING}
                emulator.fault("status", status=400, body={"type": "error", "error": error})
        emulator.answer(thinking("So."), heard)
        self.began.clear()
        await self.world.say(thread, f"Said {step['said']}")
        if action == "stop an answer":
            await self.world.held()
        elif action == "stop a tool":
            await self.world.until(lambda: self.began)
        if action.startswith("stop"):
            await self.world.stop(thread, await self.world.running_frame(thread))
        await self.world.rest(thread)
        self.received += [one["body"] for one in emulator.requests(path="/v1/messages")]
        emulator.reset()

    def _go_back(self, action, thread, number):
        rows = list(Message.objects.filter(thread=thread, wire__isnull=False).order_by("pk"))
        if not rows:
            return
        row = rows[number % len(rows)]
        if action == "rewind":
            self._try(revising.rewind, thread.owner, thread.channel, row.pk)
        elif branch := self._try(revising.fork, thread.owner, thread.channel, row.pk):
            self.threads.append(Thread.objects.select_related("owner").get(pk=branch.pk))

    def _try(self, change, *arguments):
        try:
            return change(*arguments)
        except Refused:
            return None


def test_every_request_of_any_conversation_that_was_really_held_is_proved(emulator, alice, tools, two_models):
    @how(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(order=st.permutations(ACTIONS), steps=st.lists(STEP, min_size=len(ACTIONS), max_size=len(ACTIONS)))
    def hold(order, steps):
        catalog.load_catalog()
        emulator.reset()
        since = ModelCall.objects.count()

        async def run():
            async with running_world(emulator) as world:
                played = Played(world, await world.new_thread(alice), tools)
                for action, step in zip(order, steps, strict=True):
                    await played.step(action, step)
                return played

        played = async_to_sync(run)()
        calls = list(ModelCall.objects.order_by("id"))[since:]
        assert [call.body_sha256 for call in calls] == [
            hashlib.sha256(body.encode()).hexdigest() for body in played.received
        ]
        assert {"transient", "interrupted", "complete"} <= {call.outcome for call in calls}
        reports = [verify_thread(thread) for thread in played.threads]
        assert [finding for report in reports for finding in report.findings] == []
        assert sum(report.proved for report in reports) == len(calls)

    hold()
