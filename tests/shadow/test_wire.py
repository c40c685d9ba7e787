"""What a shadow sends: a conversation's own last request, byte for byte, and two messages more."""

import json

import pytest

from agent.models import ToolCall
from agent.policy import SHADOW_TOOL
from agent.registry import ToolContext, ToolOutput, tool, unregister
from llm.emulator.client import text, thinking, tool_use
from llm.models import ModelCall
from maxclaw import clock
from memory import fact_lines
from memory.fact_search import hit_of, shown
from memory.models import Fact
from shadow.known import HEADING
from shadow.models import ShadowFactProposal, ShadowRun
from tests.memory.facts import fact_row
from tests.shadow.playing import ASKED, LONG, item, play, proposes, shadow
from tests.threads.records import say
from threads.models import Generation, Message
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lookup_tool():
    @tool(name="lookup", description="Looks up.", parameters={"type": "object"}, parallel_safe=True)
    def lookup(_context: ToolContext, arguments: dict) -> ToolOutput:
        return ToolOutput(f"found {json.dumps(arguments)}")

    yield
    unregister("lookup")


def anchors_of(body):
    """Places of the anchors in the messages: (message, block)."""
    return [
        (number, place)
        for number, message in enumerate(json.loads(body)["messages"])
        for place, block in enumerate(message["content"])
        if "cache_control" in block
    ]


def with_anchors(body):
    """The exact text of each message, anchors and all."""
    start = body.index('"messages":[') + len('"messages":[')
    decoder, texts, position = json.JSONDecoder(), [], start
    while body[position] != "]":
        _value, end = decoder.raw_decode(body, position)
        texts.append(body[position:end])
        position = end + (body[end] == ",")
    return texts


def check_follows(earlier, later, answer_wire):
    """The hot request is the earlier one, its answer, and one message of the user's."""
    before, after = with_anchors(earlier["body"]), with_anchors(later["body"])
    assert after[: len(before)] == before
    assert len(after) == len(before) + 2
    assert after[-2] == f'{{"role":"assistant","content":{answer_wire}}}'
    one, two = json.loads(earlier["body"]), json.loads(later["body"])
    for key in ("model", "system", "tools", "thinking", "tool_choice", "output_config"):
        assert json.dumps(one.get(key)) == json.dumps(two.get(key)), key
    assert anchors_of(later["body"]) == anchors_of(earlier["body"])
    assert later["body"].count('"cache_control"') <= 4
    usage, previous = later["usage"], earlier["usage"]
    whole = previous["input_tokens"] + previous["cache_read_input_tokens"] + previous["cache_creation_input_tokens"]
    assert usage["cache_read_input_tokens"] >= whole
    return two["messages"][-1]


def test_a_hot_question_follows_the_last_request_byte_for_byte_and_reads_all_of_it_from_the_cache(
    emulator, alice, lookup_tool
):
    emulator.answer(thinking("Two lookups."), text("Let me look."), tool_use("lookup", {"a": 1}), tool_use("lookup"))
    emulator.answer(thinking("Both are here."), text("Found both."))
    asks = [tool_use("ask_user_question", {"question": "Which?"}), tool_use("lookup", {"b": 2})]
    emulator.answer(thinking("Green or black?"), *asks)

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        await world.ask(thread, "I prefer tea.")
        return thread

    thread = play(emulator, scenario)
    # The open card is what made it due, at once.
    assert [(run.reason, run.status) for run in ShadowRun.objects.all()] == [("waiting-max", "queued")]
    earlier = emulator.requests(path="/v1/messages")[-1]
    said = Message.objects.get(thread=thread, text="I prefer tea.")
    fact = fact_row(alice, said, "Drinks oolong.")
    proposes(emulator, item(f"m:{said.pk}"))
    run = shadow(thread)
    assert (run.status, run.path, run.path_reason, run.error) == ("completed", "hot", "", "")
    answer = Message.objects.filter(thread=thread, role="assistant").latest("pk")
    later = emulator.requests(path="/v1/messages")[-1]
    last = check_follows(earlier, later, answer.wire)
    # Thinking goes back as it came, signed, in the turns before and in the answer that the question follows.
    *before, followed, _asked = (message["content"] for message in json.loads(later["body"])["messages"])
    thought = [block["thinking"] for content in before for block in content if block["type"] == "thinking"]
    assert thought == ["Two lookups.", "Both are here."]
    assert (followed[0]["type"], followed[0]["thinking"]) == ("thinking", "Green or black?")
    assert followed[0]["signature"]
    # The results first: one stored, one of a call that is still open.
    card, looked, asked = last["content"]
    assert [card["type"], looked["type"]] == ["tool_result", "tool_result"]
    assert "still in progress in the original thread" in card["content"][0]["text"]
    assert looked["content"][0]["text"] == 'found {"b": 2}'
    assert asked["text"].startswith("This is a shadow turn")
    assert f"[m:{said.pk}] user" in asked["text"]
    # What memory knows stands there alone, and last.
    assert later["body"].count(HEADING) == later["body"].count("oolong") == 1
    assert asked["text"].splitlines()[-2:] == [
        HEADING,
        fact_lines.line(hit_of(shown(Fact.objects.filter(pk=fact.pk)).get())),
    ]
    assert "cache_control" not in json.dumps(last)
    assert run.cache_read_tokens == later["usage"]["cache_read_input_tokens"]
    assert run.through_seq == Message.objects.filter(thread=thread, role="tool").latest("pk").pk
    [proposal] = ShadowFactProposal.objects.all()
    assert (proposal.text, proposal.validation_error, proposal.evidence.get().message) == ("Prefers tea.", "", said)
    assert verify_thread(thread).findings == []


def test_a_shadow_reads_the_cache_anew_and_so_keeps_it(emulator, alice):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, f"I prefer tea. {LONG}")
        return thread

    thread = play(emulator, scenario)
    first = emulator.requests(path="/v1/messages")[-1]
    with clock.moved(200):
        emulator.move_clock(200)
        assert shadow(thread).path == "hot"
    # The model answers by rule: one fact, proved by the row it stands in.
    [proposal] = ShadowFactProposal.objects.all()
    assert (proposal.validation_error, proposal.aspect) == ("", "preference")
    ShadowRun.objects.all().delete()  # the same rows once more
    with clock.moved(400):  # past the first request's five minutes, within those of the shadow's reading
        emulator.move_clock(200)
        run = shadow(thread)
    assert (run.path, run.path_reason) == ("hot", "")
    assert emulator.requests(path="/v1/messages")[-1]["usage"]["cache_read_input_tokens"] >= (
        first["usage"]["input_tokens"] + first["usage"]["cache_creation_input_tokens"]
    )


def test_ordinary_turns_list_the_tool_and_refuse_it_and_a_shadow_refuses_all_else(emulator, alice):
    emulator.answer(tool_use(SHADOW_TOOL, {"facts": []}))
    emulator.answer(text("Well."))

    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, LONG)
        return thread

    thread = play(emulator, scenario)
    first = json.loads(emulator.requests(path="/v1/messages")[0]["body"])
    assert SHADOW_TOOL in [one["name"] for one in first["tools"]]
    assert SHADOW_TOOL not in json.dumps(first["messages"]) + json.dumps(first["system"])
    refused = ToolCall.objects.get(thread=thread)
    assert (refused.status, refused.result.is_error) == ("refused", True)
    assert "is not available in this turn" in refused.result.text
    emulator.answer(tool_use("search_memory", {"query": "tea"}), match=ASKED)
    run = shadow(thread)
    assert (run.status, run.error) == ("failed", "foreign-calls")
    assert ToolCall.objects.filter(thread=thread).count() == 1
    call = ModelCall.objects.get(pk=run.call)
    assert (call.purpose, call.outcome, run.output_tokens) == ("shadow", "complete", call.output_tokens)
    assert call.output_tokens > 0


def test_a_cold_question_is_rendered_for_a_light_model_and_tags_may_stay_on_ids(emulator, alice):
    async def scenario(world):
        thread = await world.new_thread(alice)
        await world.ask(thread, "I prefer tea. Please remember nothing.")
        return thread

    thread = play(emulator, scenario)
    said = Message.objects.get(thread=thread, role="user")
    with clock.moved(600):
        concluded, accepted = say(thread, "assistant", "So it is green tea."), say(thread, "user", "Yes, exactly.")
    generation = said.generation
    Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason="manual")
    yes = {"kind": "max-accepted", "message_id": f"m:{concluded.pk}", "accepted_by": f"m:{accepted.pk}"}
    whole = {"kind": "observed-outcome", "generation_id": generation.pk}

    def event(evidence):
        fields = item(said.pk, "Tea was chosen, because it is milder.", kind="event", evidence=[evidence])
        return {name: value for name, value in fields.items() if name != "aspect"}

    items = [
        item(f"m:{said.pk}"),
        item(said.pk, "Prefers green tea.", evidence=[yes]),
        event(whole),
        # The same but for the tag, which is taken off ids of messages alone.
        event(whole | {"generation_id": f"m:{generation.pk}"}),
        item("m:"),
    ]
    proposes(emulator, *items)
    with clock.moved(3600):
        emulator.move_clock(3600)
        run = shadow(thread)
    assert (run.status, run.path, run.path_reason, run.model) == ("completed", "cold", "expired", "emulator-light")
    body = json.loads(emulator.requests(path="/v1/messages")[-1]["body"])
    assert [one["name"] for one in body["tools"]] == [SHADOW_TOOL]
    assert len(body["messages"]) == 1
    good, agreed, outcome, tagged, bare = ShadowFactProposal.objects.order_by("position")
    assert [good.validation_error, agreed.validation_error, outcome.validation_error] == [""] * 3
    assert good.evidence.get().message == said
    assert (agreed.evidence.get().message, agreed.evidence.get().accepted_by) == (concluded, accepted)
    assert outcome.evidence.get().generation == generation
    assert "generation_id" in tagged.validation_error and "integer" in tagged.validation_error
    assert "message_id is a whole number" in bare.validation_error
