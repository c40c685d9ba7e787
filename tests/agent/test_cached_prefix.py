"""What was sent is frozen: each request begins, byte for byte, with the one before it, and its cache is read."""

import itertools
import json
import re

import pytest
from asgiref.sync import async_to_sync

from agent.registry import ToolContext, ToolOutput, tool, unregister
from llm.emulator.client import text, thinking, tool_use
from llm.models import ModelCall
from tests.agent.world import running_world

pytestmark = pytest.mark.django_db(transaction=True)

ANCHOR = re.compile(r',"cache_control":\{[^}]*\}')
LONG = "A long enough sentence about nothing in particular, to pass the smallest cacheable prefix. " * 40


@pytest.fixture
def lookup_tool():
    @tool(name="lookup", description="Looks up.", parameters={"type": "object"}, parallel_safe=True)
    def lookup(_context: ToolContext, arguments: dict) -> ToolOutput:
        return ToolOutput(f"found {json.dumps(arguments)}")

    yield
    unregister("lookup")


def message_texts(body: str) -> list[str]:
    """The exact text of each message of a request, without its anchors."""
    start = body.index('"messages":[') + len('"messages":[')
    decoder = json.JSONDecoder()
    texts, position = [], start
    while body[position] != "]":
        _value, end = decoder.raw_decode(body, position)
        texts.append(ANCHOR.sub("", body[position:end]))
        position = end + (body[end] == ",")
    return texts


def check_each_extends_the_one_before(requests: list[dict]) -> None:
    for earlier, later in itertools.pairwise(requests):
        before, after = message_texts(earlier["body"]), message_texts(later["body"])
        assert after[: len(before)] == before
        assert len(after) > len(before)
        one, two = json.loads(earlier["body"]), json.loads(later["body"])
        for key in ("model", "system", "tools", "thinking", "tool_choice", "output_config"):
            assert json.dumps(one.get(key)) == json.dumps(two.get(key)), key
        assert later["body"].count('"cache_control"') <= 4
        usage, previous = later["usage"], earlier["usage"]
        whole = previous["input_tokens"] + previous["cache_read_input_tokens"] + previous["cache_creation_input_tokens"]
        assert usage["cache_read_input_tokens"] >= whole


def run_turns(emulator, alice, words: list[str], thread=None):
    async def scenario():
        async with running_world(emulator) as world:
            running = thread or await world.new_thread(alice)
            for said in words:
                await world.ask(running, said)
            return running

    return async_to_sync(scenario)()


def script_two_turns_with_two_tools(emulator) -> None:
    emulator.answer(
        thinking("Two lookups at once."),
        text("Let me look."),
        tool_use("lookup", {"a": 1.5, "b": {"c": ["π", None, True]}}),
        tool_use("lookup", {"q": '"quoted" \\ back'}),
    )
    emulator.answer(thinking("Both are here."), text("Found both."))
    emulator.answer(text("Second answer."))


def test_two_turns_with_two_tools_between_share_a_byte_identical_prefix(emulator, alice, lookup_tool):
    script_two_turns_with_two_tools(emulator)
    run_turns(emulator, alice, [LONG, "And now something else"])
    requests = emulator.requests(path="/v1/messages")
    assert len(requests) == 3
    check_each_extends_the_one_before(requests)


def test_the_prefix_holds_in_a_new_process(emulator, alice, lookup_tool):
    """Bell, runner and every cache of this process are made anew: the request comes from the records alone."""
    script_two_turns_with_two_tools(emulator)
    thread = run_turns(emulator, alice, [LONG])
    from llm import wire

    wire.forget_headers()
    run_turns(emulator, alice, ["And now something else"], thread)
    check_each_extends_the_one_before(emulator.requests(path="/v1/messages"))


def test_a_turn_of_45_blocks_is_read_from_the_cache_all_the_same(emulator, alice, lookup_tool):
    """More blocks than the provider looks back: the middle anchor is what reaches the earlier entry."""
    emulator.answer(text("Many."), *[tool_use("lookup", {"n": number}) for number in range(22)])
    emulator.answer(text("Done."))
    emulator.answer(text("Next."))
    run_turns(emulator, alice, [LONG, "Go on"])
    requests = emulator.requests(path="/v1/messages")
    assert sum(len(json.loads(one)["content"]) for one in message_texts(requests[1]["body"])) >= 45
    check_each_extends_the_one_before(requests)


def test_the_ledger_says_what_the_provider_said(emulator, alice, lookup_tool):
    script_two_turns_with_two_tools(emulator)
    run_turns(emulator, alice, [LONG, "And now something else"])
    for call, request in zip(ModelCall.objects.order_by("id"), emulator.requests(path="/v1/messages"), strict=True):
        assert call.input_tokens == request["usage"]["input_tokens"]
        assert call.cache_read_tokens == request["usage"]["cache_read_input_tokens"]
        assert call.output_tokens == request["usage"]["output_tokens"]
        assert call.prices is None or call.cost is not None
