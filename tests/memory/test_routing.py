"""Write routing: one registry, and every prompt that is rendered from it says the same."""

import pytest

from agent import prompts, registry
from memory import routing, steward_prompt, triage
from shadow import question

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


def rendered() -> dict[str, str]:
    """Every text that a model reads of routing, as it reads it."""
    texts = {f"for {reader}": routing.render_for(reader) for reader in routing.READERS}
    texts["system text"] = prompts.system_text()
    texts |= {"steward": steward_prompt.system(), "shadow": question.instruction(), "triage": triage.system()}
    texts |= {f"tool {tool.name}": tool.description for tool in registry.all_tools() if "memory" in tool.description}
    return texts


def speaks_of_writing(name: str) -> bool:
    return name != "tool search_memory"


@pytest.mark.parametrize("name", [name for name in rendered() if speaks_of_writing(name)])
def test_every_prompt_says_what_memory_takes_and_what_it_does_not(name):
    text = " ".join(rendered()[name].split())
    assert [phrase for phrase in EVERYWHERE if phrase not in text] == []


@pytest.mark.parametrize("name", rendered())
def test_no_prompt_says_what_no_longer_holds(name):
    text = " ".join(rendered()[name].lower().split())
    assert [phrase for phrase in NOWHERE if phrase in text] == []


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
    assert "m:" not in question.instruction()
    assert "m:" not in steward_prompt.system()  # the tag is stripped where evidence is read, and not spoken of
