"""Older models think with a budget, demand that thinking back in an open round of tools, and strip it afterwards."""

import pytest

from llm.emulator.client import text, thinking, tool_use
from tests.llm.emulator.asking import ADAPTIVE, TOOLS, ask, refusal, result
from tests.llm.emulator.test_thinking import sent_back

OLDER = "older"
BUDGET = {"type": "enabled", "budget_tokens": 1_024}
THINK = {"model": OLDER, "thinking": BUDGET, "tools": TOOLS, "max_tokens": 2_000}
QUESTION = "What time is it?"


@pytest.fixture(autouse=True)
def older(emulator):
    emulator.register_model(OLDER, manual_thinking=True, strips_thinking=True, thinking_bound=False)


@pytest.fixture
def called(emulator, client):
    """An answer that thinks and calls a tool, as it goes back."""
    emulator.answer(thinking("Let me look at the clock. " * 20), tool_use("clock", {}))
    return sent_back(ask(client, QUESTION, **THINK))


def results(called):
    return {"role": "user", "content": [result(called["content"][-1]["id"])]}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"thinking": ADAPTIVE}, "adaptive thinking is not supported on this model"),
        ({"thinking": {"type": "enabled"}}, "thinking.enabled.budget_tokens: Field required"),
        (
            {"thinking": {**BUDGET, "budget_tokens": "many"}},
            "thinking.enabled.budget_tokens: Input should be a valid integer",
        ),
        (
            {"thinking": {**BUDGET, "budget_tokens": 1_023}},
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        ),
        ({"max_tokens": 1_024}, "`max_tokens` must be greater than `thinking.budget_tokens`."),
        ({"tool_choice": {"type": "any"}}, "Thinking may not be enabled when tool_choice forces tool use."),
    ],
)
def test_a_budget_is_checked(client, changed, words):
    assert refusal(client, QUESTION, **{**THINK, **changed}) == words


def test_the_open_round_of_tools_needs_its_thinking(client, emulator, called):
    emulator.answer(text("Noon."))
    assert ask(client, QUESTION, called, results(called), **THINK).content[0].text == "Noon."
    without = {**called, "content": called["content"][1:]}
    said = refusal(client, QUESTION, without, results(called), **THINK)
    assert said.startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    )
    # Thinking that a turn before had may be left out.
    emulator.answer(text("Noon."))
    assert ask(
        client, QUESTION, without, results(called), {"role": "assistant", "content": "Noon."}, "Thanks.", **THINK
    )


def test_thinking_is_stripped_and_costs_nothing_once_the_person_speaks_again(client, emulator, called):
    emulator.answer(text("Noon."), times=4)
    without = {**called, "content": called["content"][1:]}

    def counted(*messages, **parameters):
        return ask(client, QUESTION, *messages, **{**THINK, **parameters}).usage.input_tokens

    later = (results(called), {"role": "assistant", "content": "Noon."}, "Thanks.")
    assert counted(called, *later) == counted(without, *later)
    tokens = client.messages.count_tokens
    asked = {"model": OLDER, "tools": TOOLS, "thinking": BUDGET}
    whole = [{"role": "user", "content": QUESTION}, called, results(called)]
    open_round = tokens(messages=whole, **asked).input_tokens
    assert open_round > tokens(messages=[whole[0], without, whole[2]], model=OLDER, tools=TOOLS).input_tokens + 50
