"""Write routing: one registry, and every prompt that is rendered from it says the same."""

import json
import re
from pathlib import Path

import pytest

from agent import context, prompts, registry, summarizing, summary
from agent.policy import SHADOW_TOOL
from agent.registry import Tool
from memory import answering, routing, steward_prompt, steward_tools, triage
from memory.backlog import Page
from shadow import pairing, question
from threads.models import Generation

EVERYWHERE = (
    "a preference, a decision or a correction",
    "an event with its reason",
    "a pointer to a document: where it is, never what it says",
    "First confirm with a read-only tool that its path exists",
    "recipes, configuration, deployment state and commits, API usage, reproduction steps, repairs, project progress",
    "Such things are not and must not be written to memory",
    "Views that apply to different things stand side by side",
    "replaces an earlier one only when both speak of the same thing and apply to the same thing",
    "a passing remark or a decision",
    "by the conversation that verified it, in the same turn",
    "knowledge that belongs to no project: it stays where it was said",
)
NOWHERE = (
    "when the conversation is read",
    "long-term memory",
    "bound to the project",
    "project_state",  # until there is such a tool
)


def wire(tool: Tool) -> str:
    """A tool as a model reads it, its schema included."""
    return json.dumps(tool.wire(), ensure_ascii=False)


def deciding() -> dict[str, str]:
    """What each model reads that decides where something is written, as it reads it."""
    generation = Generation(pk=7)
    steward_asked = steward_prompt.question(generation, Page(), [], []).content
    return {
        "system text": prompts.system_text(),
        "steward": f"{steward_prompt.system()}\n{steward_asked}",
        "shadow": question.text(generation, Page(), ""),
        "triage": triage.system(),
        "remember": json.loads(wire(registry.get("remember")))["description"],
        **{f"for {reader}": routing.render_for(reader) for reader in routing.READERS},
    }


def writing_tools() -> dict[str, str]:
    """The tools with which something is written into memory, proposed for it or judged."""
    own = {f"steward's {name}": wire(tool) for name, tool in steward_tools.tools().items()}
    tools = [registry.get("remember"), registry.get(SHADOW_TOOL), triage.JUDGE]
    return own | {tool.name: wire(tool) for tool in tools}


def rendered() -> dict[str, str]:
    """Every text of ours that any model is sent as an instruction."""
    return {
        **deciding(),
        **writing_tools(),
        **{f"tool {tool.name}": wire(tool) for tool in registry.all_tools()},
        "cold shadow": question.COLD_SYSTEM,
        "summary": summary.question([], missing=[1]),
        "cold summary": summarizing.COLD_SYSTEM_TEXT,
        "answer of a search": answering.SYSTEM,
        "pairs": pairing.SYSTEM + wire(pairing.REPORT),
        "opening": context.EARLIER,
    }


@pytest.mark.parametrize("name", deciding())
def test_every_prompt_says_what_memory_takes_and_what_it_does_not(name):
    text = " ".join(deciding()[name].split())
    assert [phrase for phrase in EVERYWHERE if phrase not in text] == []


@pytest.mark.parametrize("name", rendered())
def test_no_prompt_says_what_no_longer_holds(name):
    text = " ".join(rendered()[name].lower().split())
    assert [phrase for phrase in NOWHERE if phrase in text] == []


@pytest.mark.parametrize("name", ["steward", "shadow", "triage", *writing_tools()])
def test_who_writes_memory_reads_nothing_of_the_tag_of_messages(name):
    """It is stripped where evidence is read, and not spoken of. What reads old words cites them with it."""
    assert re.search(r"\bm:", rendered()[name]) is None


def test_whoever_asks_a_model_has_its_words_among_these():
    """A new place that asks one makes this fail, until what it asks is among what is looked through above."""
    calls = re.compile(r"\b(?:header_text|BackgroundCall)\(")
    apps = ("agent", "memory", "quotes", "shadow", "threads", "chat")
    asking = {str(path) for app in apps for path in Path(app).rglob("*.py") if calls.search(path.read_text())}
    assert asking == {
        "agent/preparation.py",
        "agent/summarizing.py",
        "memory/answering.py",
        "memory/background_calls.py",
        "memory/steward.py",
        "memory/triage.py",
        "shadow/asking.py",
        "shadow/pairing.py",
    }


def test_what_memory_does_not_take_is_one_of_its_rejections():
    memory = next(sink for sink in routing.SINKS if sink.name == "memory")
    assert any("are not and must not be written to memory" in rejection for rejection in memory.rejects)
    assert [len(sink.accepts) > 0 for sink in routing.SINKS] == [True] * 4


def test_prompts_differ_in_their_first_paragraph_alone():
    rest = {routing.render_for(reader).partition("\n\n")[2] for reader in routing.READERS}
    assert len(rest) == 1
    assert rest.pop() in prompts.system_text()


def test_only_tools_that_exist_are_named():
    names = {sink.written_with for sink in routing.SINKS} - {""}
    assert names <= {tool.name for tool in registry.all_tools()}


def test_each_writer_reads_what_is_rendered_for_it():
    assert registry.get("remember").description == routing.render_for(routing.REMEMBER)
    assert routing.render_for(routing.STEWARD) in steward_prompt.system()
    assert routing.render_for(routing.TRIAGE) in triage.system()
    assert routing.render_for(routing.SHADOW) in question.instruction()
    assert steward_prompt.EVIDENCE in question.instruction()
