"""What was sent is frozen: each request begins, byte for byte, with the one before it, and its cache is read."""

import hashlib
import itertools
import json
import re

import pytest
from asgiref.sync import async_to_sync

from agent.registry import ToolContext, ToolOutput, tool, unregister
from llm import wire
from llm.emulator.client import text, thinking, tool_use
from llm.models import ModelCall
from tests.agent.test_fallback import PALETTE
from tests.agent.world import running_world
from threads.verification import verify_thread

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


def test_the_ledger_keeps_the_digest_of_the_very_bytes_that_reached_the_wire(
    emulator, alice, lookup_tool, settings, tmp_path
):
    """No other form of a body is hashed than the bytes as the server received them: nothing is parsed, sorted or
    normalised between. Over a round of tools, what a new process rebuilds, a refused attempt, its retry and a fallback;
    and `verify` comes to the same digests from the records."""
    file = tmp_path / "catalog.toml"
    file.write_text(PALETTE)
    settings.MAXCLAW_CATALOG = str(file)
    settings.MODEL_RETRIES = 1
    script_two_turns_with_two_tools(emulator)
    emulator.fault("status", status=529, times=2, match={"model": "emulator-main", "any_contains": "third"})
    emulator.answer(tool_use("lookup", {"n": 1e21}), match={"model": "emulator-light-all"})
    emulator.answer(text("Third answer."), match={"model": "emulator-light-all"})
    thread = run_turns(emulator, alice, [f"{LONG} “naïve” \u2028 \x00 \ud800 漢字 🙂"])
    wire.forget_headers()
    run_turns(emulator, alice, ["And now something else", "And the third"], thread)
    received = [hashlib.sha256(one["body"].encode()).hexdigest() for one in emulator.requests(path="/v1/messages")]
    calls = list(ModelCall.objects.order_by("id"))
    assert [call.model for call in calls] == ["emulator-main"] * 5 + ["emulator-light-all"] * 2
    assert [call.body_sha256 for call in calls] == received
    assert calls[3].body_sha256 == calls[4].body_sha256, "a retry sends the same bytes"
    report = verify_thread(thread)
    assert report.calls == report.proved == len(calls)
