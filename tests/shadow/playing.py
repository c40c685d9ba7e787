"""Conversations with a real runner, and their shadows run in this process as a worker runs them."""

from asgiref.sync import async_to_sync

from agent.policy import SHADOW_TOOL
from llm.emulator.client import tool_use
from shadow import cursors, draining, tasks, triggers
from tests.agent.world import running_world

# What every question of a shadow holds, and nothing else that is sent.
ASKED = {"contains": "This is a shadow turn"}
LONG = "A long enough sentence about nothing in particular, to pass the smallest cacheable prefix. " * 40


def play(emulator, scenario):
    """Run a scenario in a world with a runner; cursors are there from the beginning."""
    cursors.initialize()

    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


def shadow(thread, reason="waiting-max"):
    """Trigger a run of a thread and run what waits. Returns the thread's newest run, None when none was made."""
    triggers.trigger(thread.pk, reason)
    tasks.drain()
    return thread.shadow_runs.order_by("-pk").first()


async def drain():
    """The same in a scenario's own event loop."""
    return await draining.run_waiting()


def item(message_id, text="Prefers tea.", **fields):
    """A fact as a model proposes it, proved by a message."""
    said = {
        "text": text,
        "kind": "about-user",
        "aspect": "preference",
        "tone": "remark",
        "evidence": [{"kind": "max-stated", "message_id": message_id}],
    }
    return said | fields


def proposes(emulator, *items, **options):
    """The next question of a shadow is answered with these items."""
    emulator.answer(tool_use(SHADOW_TOOL, {"facts": list(items)}), match=ASKED, **options)
