"""What tests of renewing a context share: long words, summaries, and how it is played."""

from asgiref.sync import async_to_sync

from llm.models import ModelCall
from tests.agent.test_summary import ten_sections
from tests.agent.world import running_world
from threads.models import Generation

LONG = "Some words about the garden and its many roses. " * 1_200  # about 13,000 tokens
ASKED = {"contains": "ten numbered\nsections"}


def play(emulator, scenario):
    async def run():
        async with running_world(emulator) as world:
            return await scenario(world)

    return async_to_sync(run)()


def generations(thread):
    return list(Generation.objects.filter(thread=thread).order_by("ordinal"))


def compactions():
    return list(ModelCall.objects.filter(purpose="compaction").order_by("id").values_list("model", "outcome"))


def summary_text(**bodies):
    return ten_sections(s1="- The garden (m:1)", **bodies)


async def fill(world, alice, **fields):
    thread = await world.new_thread(alice, **fields)
    await world.ask(thread, LONG)
    return thread
