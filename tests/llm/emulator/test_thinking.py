"""Thinking is signed, and has to come back as it was, behind what it was made behind."""

import copy

import anthropic
import pytest

from llm.emulator.client import redacted_thinking, text, thinking, tool_use
from tests.llm.emulator.asking import ADAPTIVE, MAIN, TOOLS, ask, marked, refusal, result, user

ELSEWHERE = (
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different "
    "conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
NOT_MODIFIABLE = (
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot "
    "be "
    "modified. These blocks must remain as they were in the original response."
)
THINK = {"thinking": ADAPTIVE, "tools": TOOLS}


def sent_back(message: anthropic.types.Message):
    """The answer as an assistant message of the next request."""
    return {
        "role": "assistant",
        "content": [block.model_dump(exclude_unset=True) for block in message.content],
    }


def thought(emulator, client, *blocks, before=("What time is it?",), **parameters):
    """One answer that thinks first, then says `blocks`, in the form in which it goes back."""
    emulator.answer(thinking("Let me think about it."), *blocks)
    return sent_back(ask(client, *before, **{**THINK, **parameters}))


def test_thinking_goes_back_unchanged_and_is_billed_as_input(emulator, client):
    said = thought(emulator, client, "Noon.")
    with_it = ask(client, "What time is it?", said, "Thanks.", **THINK).usage.input_tokens
    said["content"] = said["content"][1:]
    assert with_it > ask(client, "What time is it?", said, "Thanks.", **THINK).usage.input_tokens


def test_thinking_is_counted_apart(emulator, client):
    emulator.answer(thinking("Let me think about it. " * 10), "Noon.")
    usage = ask(client, "What time is it?", **THINK).usage
    assert usage.output_tokens_details is not None
    assert 40 < usage.output_tokens_details.thinking_tokens < usage.output_tokens


def test_thinking_is_not_sent_when_it_is_off(emulator, client):
    emulator.answer(thinking("Hidden."), "Noon.")
    assert [block.type for block in ask(client, "Time?").content] == ["text"]


def test_edited_thinking_of_the_latest_answer_cannot_be_modified(emulator, client):
    said = thought(emulator, client, tool_use("clock", call_id="toolu_1"))
    said["content"][0]["thinking"] += " More."
    assert refusal(client, "What time is it?", said, user(result("toolu_1")), **THINK) == NOT_MODIFIABLE


def test_emptied_thinking_is_edited_thinking(emulator, client):
    said = thought(emulator, client, tool_use("clock", call_id="toolu_1"))
    said["content"][0]["thinking"] = ""
    assert refusal(client, "What time is it?", said, user(result("toolu_1")), **THINK) == NOT_MODIFIABLE


def test_edited_thinking_of_an_earlier_answer_has_an_invalid_signature(emulator, client):
    said = thought(emulator, client, "Noon.")
    said["content"][0]["thinking"] += " More."
    later = {"role": "assistant", "content": "You are welcome."}
    assert refusal(client, "What time is it?", said, "Thanks.", later, "Bye.", **THINK) == (
        "messages.1.content.0: Invalid `signature` in `thinking` block"
    )


@pytest.mark.parametrize("signature", ["", "nonsense", "EqQBCgIYAhIkMTIzNDU2Nzg5MA=="])
def test_a_signature_that_was_not_made_here_is_invalid(emulator, client, signature):
    said = thought(emulator, client, "Noon.")
    said["content"][0]["signature"] = signature
    assert refusal(client, "What time is it?", said, "Thanks.", **THINK) == (
        "messages.1.content.0: Invalid `signature` in `thinking` block"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"system": "Another system text."},
        {"tools": TOOLS[:1]},
        {"before": "What time is it now?"},
    ],
)
def test_thinking_is_bound_to_everything_before_it(emulator, client, change):
    said = thought(emulator, client, "Noon.")
    parameters = {**THINK, **change}
    before = parameters.pop("before", "What time is it?")
    assert refusal(client, before, said, "Thanks.", **parameters) == ELSEWHERE


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": 90},
        {"tool_choice": {"type": "none"}},
        {"output_config": {"effort": "low"}},
        {"system": [], "thinking": {"type": "disabled"}},
    ],
)
def test_thinking_is_not_bound_to_parameters(emulator, client, change):
    said = thought(emulator, client, "Noon.")
    assert ask(client, "What time is it?", said, "Thanks.", **{**THINK, **change}).stop_reason == "end_turn"


def test_thinking_is_not_bound_to_cache_markers(emulator, client):
    said = thought(emulator, client, "Noon.", before=(user(marked("What time is it?")),))
    moved = copy.deepcopy(said)
    moved["content"][1] = marked(moved["content"][1])
    assert ask(client, "What time is it?", moved, "Thanks.", **THINK).stop_reason == "end_turn"


def test_thinking_between_tools_is_bound_to_the_answer_so_far(emulator, client):
    emulator.answer(thinking("First."), text("Looking."), thinking("Second."), "Noon.")
    said = sent_back(ask(client, "Time?", **THINK))
    assert ask(client, "Time?", said, "Thanks.", **THINK).stop_reason == "end_turn"
    said["content"][1]["text"] = "Looked."
    assert refusal(client, "Time?", said, "Thanks.", **THINK) == ELSEWHERE.replace("1.content.0", "1.content.2")


def test_a_thought_in_the_middle_of_the_latest_answer_needs_the_one_before(emulator, client):
    said = thought(emulator, client, "Looking.", thinking("Second."), tool_use("clock", call_id="toolu_1"))
    said["content"] = said["content"][1:]
    assert refusal(client, "What time is it?", said, user(result("toolu_1")), **THINK) == NOT_MODIFIABLE.replace(
        "content.0", "content.1"
    )


def conversation_with_three_thoughts(emulator, client):
    messages = []
    for number in range(3):
        messages.append(user(f"Question {number}."))
        messages.append(thought(emulator, client, f"Answer {number}.", before=messages))
    return [*messages, user("And?")]


def test_a_leading_run_of_thinking_may_be_left_out(emulator, client):
    messages = conversation_with_three_thoughts(emulator, client)
    for number in (1, 3, 5):
        messages[number]["content"] = messages[number]["content"][1:]
        assert ask(client, *messages, **THINK).stop_reason == "end_turn"


def test_thinking_in_the_middle_may_not_be_left_out(emulator, client):
    messages = conversation_with_three_thoughts(emulator, client)
    messages[3]["content"] = messages[3]["content"][1:]
    assert refusal(client, *messages, **THINK) == ELSEWHERE.replace("messages.1", "messages.5")


def test_thinking_made_after_a_leading_run_was_left_out_is_valid(emulator, client):
    messages = conversation_with_three_thoughts(emulator, client)
    messages[1]["content"] = messages[1]["content"][1:]
    messages.append(thought(emulator, client, "Answer 3.", before=messages))
    assert ask(client, *messages, "Well?", **THINK).stop_reason == "end_turn"


def test_thinking_of_another_model_is_dropped_silently_and_not_billed(emulator, client):
    said = thought(emulator, client, "Noon.")
    bare = {**said, "content": said["content"][1:]}
    for other, parameters in (("emulator-light", {"tools": TOOLS}), ("emulator-light-all", THINK)):
        with_it = ask(client, "What time is it?", said, "Thanks.", model=other, **parameters).usage
        without = ask(client, "What time is it?", bare, "Thanks.", model=other, **parameters).usage
        assert with_it.input_tokens == without.input_tokens
        assert emulator.requests()[-2]["dropped_thinking"][0]["reason"] == "model_binding_mismatch"


def test_mismatching_thinking_can_be_dropped_by_request(emulator, client):
    said = thought(emulator, client, "Noon.")
    binding = {"thinking": {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    changed = ["What time is it now?", said, "Thanks."]
    assert (
        refusal(client, *changed, tools=TOOLS, **binding)
        == "thinking.adaptive.block_binding: Extra inputs are not permitted"
    )
    beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    reply = ask(client, *changed, tools=TOOLS, extra_headers=beta, **binding)
    assert reply.model_dump()["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ]


def test_omitted_thinking_is_an_empty_text_with_a_real_signature(emulator, client):
    said = thought(emulator, client, "Noon.", thinking={**ADAPTIVE, "display": "omitted"})
    assert said["content"][0]["thinking"] == ""
    said["content"][0]["thinking"] = "Whatever stands here is ignored."
    assert ask(client, "What time is it?", said, "Thanks.", **THINK).stop_reason == "end_turn"


def test_redacted_thinking_goes_back_and_is_checked(emulator, client):
    emulator.answer(redacted_thinking(), "Noon.")
    said = sent_back(ask(client, "Time?", **THINK))
    assert said["content"][0]["type"] == "redacted_thinking"
    assert ask(client, "Time?", said, "Thanks.", **THINK).stop_reason == "end_turn"
    said["content"][0]["data"] = "forged"
    assert refusal(client, "Time?", said, "Thanks.", **THINK) == (
        "messages.1.content.0: Invalid `data` in `redacted_thinking` block"
    )


def test_a_streamed_thought_ends_with_one_signature(emulator, client):
    emulator.answer(thinking("A thought that takes more than one delta to be told."), "Noon.")
    kinds = []
    with client.messages.stream(model=MAIN, max_tokens=100, messages=[user("Time?")], **THINK) as stream:
        for event in stream:
            if event.type == "content_block_delta" and event.index == 0:
                kinds.append(event.delta.type)
    assert kinds == ["thinking_delta"] * 3 + ["signature_delta"]


def test_a_model_without_binding_takes_thinking_behind_another_prefix(emulator, client):
    emulator.register_model("unbound", adaptive_thinking=True, thinking_bound=False)
    said = thought(emulator, client, "Noon.", model="unbound")
    assert ask(client, "Another question.", said, "Thanks.", model="unbound", **THINK).stop_reason == "end_turn"
