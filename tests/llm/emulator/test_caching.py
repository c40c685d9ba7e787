"""Prompt caching is accounted by the published rules, on the emulator's own clock."""

import threading

import anthropic
import pytest

from tests.llm.emulator.asking import ADAPTIVE, TOOLS, ask, assistant, marked, refusal, user

# About 750 tokens, so above the smallest cacheable prefix of 512.
LONG = "A sentence that is long enough to be worth keeping. " * 58
SHORT_MESSAGE = "Short words."


def bill(message: anthropic.types.Message) -> tuple[int, int, int, int]:
    """(read, written for 5 minutes, written for 1 hour, input) in tokens."""
    usage = message.usage
    assert usage.cache_creation is not None
    short, long = (
        usage.cache_creation.ephemeral_5m_input_tokens,
        usage.cache_creation.ephemeral_1h_input_tokens,
    )
    assert usage.cache_creation_input_tokens == short + long
    assert usage.cache_read_input_tokens is not None
    return usage.cache_read_input_tokens, short, long, usage.input_tokens


def test_a_second_equal_request_reads_what_the_first_wrote(client):
    question = user(marked(LONG), SHORT_MESSAGE)
    read, written, _, rest = bill(ask(client, question))
    assert (read, rest) == (0, 6)
    assert written > 700
    assert bill(ask(client, question)) == (written, 0, 0, 6)


def test_input_tokens_are_those_behind_the_last_marker_and_all_add_up(client):
    total = client.messages.count_tokens(model="emulator-main", messages=[user(LONG, SHORT_MESSAGE)])
    assert sum(bill(ask(client, user(marked(LONG), SHORT_MESSAGE)))) == total.input_tokens


def test_without_a_marker_nothing_is_written_or_read(client):
    ask(client, LONG)
    assert bill(ask(client, LONG))[:3] == (0, 0, 0)


def test_below_the_smallest_prefix_nothing_is_written(client):
    small = user(marked("word " * 380))
    for _ in range(2):
        assert bill(ask(client, small))[:3] == (0, 0, 0)


def test_a_marker_that_moves_on_reads_the_longest_entry_before_it(client):
    first = [user(LONG), assistant("One."), user(marked("Two."))]
    _, written, _, _ = bill(ask(client, *first))
    second = [user(LONG), assistant("One."), user("Two."), assistant("Three."), user(marked("Four."))]
    read, added, _, rest = bill(ask(client, *second))
    assert (read, rest) == (written, 0)
    assert added > 0


@pytest.mark.parametrize(("between", "hit"), [(19, True), (20, False)])
def test_the_look_back_is_twenty_positions_counting_the_marker(client, between, hit):
    """Entry at one block, marker `between` blocks later: the twentieth position is the last one looked at."""
    start = marked(LONG)
    _, written, _, _ = bill(ask(client, user(start)))
    later = [f"Block {number}." for number in range(between - 1)]
    read, _, _, _ = bill(ask(client, user(LONG, *later, marked("End."))))
    assert read == (written if hit else 0)


def test_a_second_marker_bridges_a_turn_of_more_than_twenty_blocks(client):
    _, written, _, _ = bill(ask(client, user(marked(LONG))))
    later = [f"Block {number}." for number in range(45)]
    read, _, _, _ = bill(ask(client, user(marked(LONG), *later, marked("End."))))
    assert read == written


def test_entries_exist_only_where_a_marker_was(client):
    ask(client, user(LONG, "Between.", marked("End.")))
    assert bill(ask(client, user(LONG, marked("Between."))))[0] == 0


def test_five_minutes_from_the_start_of_the_request(emulator, client):
    question = user(marked(LONG))
    ask(client, question)
    emulator.move_clock(299)
    assert bill(ask(client, question))[0] > 0
    emulator.move_clock(301)
    assert bill(ask(client, question))[0] == 0


def test_a_read_refreshes_the_entry(emulator, client):
    question = user(marked(LONG))
    ask(client, question)
    for _ in range(5):
        emulator.move_clock(200)
        assert bill(ask(client, question))[0] > 0


def test_one_hour_entries_live_for_an_hour(emulator, client):
    question = user(marked(LONG, "1h"))
    _, short, long, _ = bill(ask(client, question))
    assert (short, long > 700) == (0, True)
    emulator.move_clock(3_599)
    assert bill(ask(client, question))[0] == long
    emulator.move_clock(3_601)
    assert bill(ask(client, question))[0] == 0


def test_an_hour_asked_for_behind_a_live_short_entry_only_reads_it(emulator, client):
    _, written, _, _ = bill(ask(client, user(marked(LONG))))
    assert bill(ask(client, user(marked(LONG, "1h")))) == (written, 0, 0, 0)
    emulator.move_clock(301)
    assert bill(ask(client, user(marked(LONG, "1h"))))[0] == 0


def test_mixed_lifetimes_are_billed_in_three_parts(client):
    system = [marked(LONG, "1h")]
    _, short, long, rest = bill(ask(client, user(marked(LONG), SHORT_MESSAGE), system=system))
    assert long > 700
    assert short > 700
    assert rest == 6
    assert bill(ask(client, user(marked(LONG), SHORT_MESSAGE), system=system)) == (long + short, 0, 0, 6)


def test_an_hour_behind_five_minutes_is_refused(client):
    assert refusal(client, user(marked("Early."), marked("Late.", "1h"))) == (
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a "
        "ttl='5m' "
        "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
        "`messages`."
    )


def test_five_markers_are_one_too_many(client):
    four = user(*[marked(f"Block {number}.") for number in range(4)])
    ask(client, four)
    five = user(*[marked(f"Block {number}.") for number in range(5)])
    assert refusal(client, five) == "A maximum of 4 blocks with cache_control may be provided. Found 5."


def test_markers_are_no_part_of_the_prefix(client):
    _, written, _, _ = bill(ask(client, user(marked(LONG))))
    read, _, _, _ = bill(ask(client, user(LONG, marked("More.")), system=[]))
    assert read == written


def test_markers_are_no_part_of_tools_calls_and_results_either(client):
    tool = {**TOOLS[0], "description": LONG}
    calling = {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {}}
    answering = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "noon"}]}
    before = [user("Time?"), assistant(marked(calling)), user(marked(answering))]
    _, written, _, _ = bill(ask(client, *before, tools=[marked(tool)]))
    after = [user("Time?"), assistant(calling), user(answering, marked("Thanks."))]
    assert bill(ask(client, *after, tools=[tool]))[0] == written


def test_merged_messages_are_the_same_prefix_as_one(client):
    _, written, _, _ = bill(ask(client, user(LONG, marked("More."))))
    assert bill(ask(client, user(LONG), user(marked("More."))))[0] == written


def test_models_and_keys_have_caches_of_their_own(emulator, client):
    question = user(marked(LONG))
    ask(client, question)
    assert bill(ask(client, question, model="emulator-light"))[0] == 0
    with anthropic.Anthropic(api_key="another", base_url=emulator.base_url) as stranger:
        assert bill(ask(stranger, question))[0] == 0


@pytest.mark.parametrize(
    ("change", "tools_survive", "system_survives", "messages_survive"),
    [
        ({"tools": TOOLS}, True, True, True),
        ({"tool_choice": {"type": "auto"}}, True, True, True),
        ({"output_config": {"effort": "high"}}, True, True, True),
        ({"thinking": {"type": "disabled"}}, True, True, True),
        ({"max_tokens": 77, "metadata": {"user_id": "u"}}, True, True, True),
        ({"tool_choice": {"type": "none"}}, True, True, False),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, True, True, False),
        ({"thinking": ADAPTIVE}, True, True, False),
        ({"output_config": {"effort": "low"}}, True, True, False),
        ({"tools": list(reversed(TOOLS))}, False, False, False),
    ],
)
def test_what_each_change_invalidates(client, change, tools_survive, system_survives, messages_survive):
    """tools, system and messages are three levels; a change reaches its own and those behind it."""
    base = {"tools": TOOLS, **change}
    tools_marked = [base["tools"][0], marked({**base["tools"][1], "description": LONG})]
    before_tools = [TOOLS[0], marked({**TOOLS[1], "description": LONG})]
    system = [marked(LONG)]
    written = bill(ask(client, user(marked(LONG)), tools=before_tools, system=system))[1]
    levels = [tools_survive, system_survives, messages_survive]
    share = written // 3
    if base["tools"] is not TOOLS:
        tools_marked = [marked({**base["tools"][0], "description": LONG}), base["tools"][1]]
    read = bill(ask(client, user(marked(LONG)), **{**base, "tools": tools_marked, "system": system}))[0]
    assert abs(read - share * sum(levels)) < 60


def test_the_automatic_marker_goes_to_the_last_block(client):
    automatic = {"cache_control": {"type": "ephemeral"}}
    _, written, _, rest = bill(ask(client, LONG, **automatic))
    assert (written > 700, rest) == (True, 0)
    assert bill(ask(client, LONG, **automatic))[0] == written
    assert bill(ask(client, user(marked(LONG)), **automatic))[0] == written
    assert "ttl" in refusal(client, user(marked(LONG, "1h")), **automatic)
    assert refusal(client, user(*[marked(f"{number}.") for number in range(4)], "End."), **automatic) == (
        "A maximum of 4 blocks with cache_control may be provided. Found 5."
    )


def test_an_entry_can_be_read_only_once_its_answer_has_begun(emulator, client):
    question = user(marked(LONG))
    emulator.answer("Late.", hold="first")
    late = threading.Thread(target=ask, args=(client, question))
    late.start()
    emulator.wait_for_held()
    read, written, _, _ = bill(ask(client, question))
    assert (read, written > 700) == (0, True)
    emulator.release("first")
    late.join()
    assert bill(ask(client, question))[0] == written


def test_of_two_requests_that_write_one_prefix_the_longer_life_stays(emulator, client):
    emulator.answer("Late.", hold="first")
    late = threading.Thread(target=ask, args=(client, user(marked(LONG))))
    late.start()
    emulator.wait_for_held()
    ask(client, user(marked(LONG, "1h")))
    emulator.release("first")
    late.join()
    emulator.move_clock(301)
    assert bill(ask(client, user(marked(LONG))))[0] > 700


def test_a_refused_call_writes_nothing(emulator, client):
    emulator.fault("status", status=529)
    with pytest.raises(anthropic.APIStatusError):
        ask(client, user(marked(LONG)))
    assert bill(ask(client, user(marked(LONG))))[0] == 0


def test_max_tokens_zero_warms_the_cache(client):
    warmed = ask(client, user(marked(LONG)), max_tokens=0)
    assert (warmed.content, warmed.stop_reason, warmed.usage.output_tokens) == ([], "max_tokens", 0)
    assert bill(ask(client, user(marked(LONG))))[0] > 700


def test_usage_is_in_message_start_and_again_in_message_delta(client):
    seen = {}
    with client.messages.stream(model="emulator-main", max_tokens=50, messages=[user(marked(LONG), "More.")]) as stream:
        for event in stream:
            if event.type == "message_start":
                seen["start"] = event.message.usage
            elif event.type == "message_delta":
                seen["delta"] = event.usage
    start, delta = seen["start"], seen["delta"]
    for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        assert getattr(start, name) == getattr(delta, name)
    assert start.output_tokens == 1
    assert delta.output_tokens > 1


def test_tool_input_is_the_same_prefix_however_its_numbers_were_written(emulator, client):
    """What counts is the parsed content: 1.50 and 1.5 are one number, another key order is another prefix."""

    def conversation(arguments):
        calling = {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": arguments}
        answering = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}
        return [user(LONG), assistant(calling), user(marked(answering))]

    _, written, _, _ = bill(ask(client, *conversation({"a": 1.50, "b": 2}), tools=TOOLS))
    assert bill(ask(client, *conversation({"a": 1.5, "b": 2}), tools=TOOLS))[0] == written
    assert bill(ask(client, *conversation({"b": 2, "a": 1.5}), tools=TOOLS))[0] == 0
