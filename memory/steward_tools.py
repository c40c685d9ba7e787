"""The steward's tools: its own, which no conversation has and which write through the one judge of evidence and the one
entry for facts, and those of conversations that only read, to confirm a pointer's path."""

from typing import Any

from agent import registry
from agent.registry import Tool, ToolContext, ToolOutput
from agent.tools import calling_thread
from memory import changing, evidence, writing
from memory.fact_arguments import EVIDENCE, FACT, FACT_REQUIRED, ID, claims_of, draft_of, fact_id_of
from memory.fact_rows import level_of, visible_facts
from memory.models import Fact
from memory.refusals import FactRefused
from memory.writing import Outcome, Written
from threads.visibility import Level, Viewer

REASON = {"type": "string", "minLength": 1, "maxLength": 500, "description": "why, in a sentence"}


def write_fact(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Write a fact at the level of the conversation that is read. Raises FactRefused."""
    return ToolOutput(_said(_written(context, arguments, None, "")))


def replace_fact(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Write a fact in the place of another one. Raises FactRefused."""
    return ToolOutput(_said(_written(context, arguments, fact_id_of(arguments["fact_id"]), arguments["reason"])))


def retire_fact(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    """Take back a fact that the conversation may see and that is seen nowhere else. Raises FactRefused."""
    thread = calling_thread(context)
    viewer = Viewer.of_thread(thread)
    fact_id = fact_id_of(arguments["fact_id"])
    fact = visible_facts(viewer).filter(pk=fact_id).first()
    if fact is None:
        raise FactRefused(f"There is no fact {fact_id}.")
    if level_of(fact) != Level.of_thread(thread):
        # Words of one level would take back, with their reason, what is seen at another.
        raise FactRefused(f"Fact {fact_id} is seen in other places than this conversation: leave it.")
    claims = claims_of(arguments)
    proofs = evidence.check(thread.owner_id, claims, kind=fact.kind, aspect=fact.aspect, thread=thread)
    if not evidence.outweighs(proofs, fact):
        raise FactRefused(f"Fact {fact_id} {writing.SETTLED}: only a later word of theirs takes it back.")
    writing.check_not_older(proofs, fact)
    as_of = max(proof.given for proof in proofs)
    changing.retire(fact, reason=arguments["reason"], writer=Fact.Writer.STEWARD, viewer=viewer, as_of=as_of)
    return ToolOutput(f"Fact {fact_id} is retired.")


def _written(context: ToolContext, arguments: dict[str, Any], replaces: int | None, reason: str) -> Written:
    thread = calling_thread(context)
    return writing.write_fact(
        thread.owner_id,
        draft_of(arguments),
        claims_of(arguments),
        writer=Fact.Writer.STEWARD,
        thread=thread,
        replaces=replaces,
        reason=reason,
        # It is shown the rows of one conversation, so an id of another is invented.
        within=thread,
    )


def _said(written: Written) -> str:
    if written.outcome == Outcome.MORE_EVIDENCE:
        return f"Fact {written.fact.pk} says so already; the evidence was added to it."
    return f"Written as fact {written.fact.pk}."


def _tool(name: str, description: str, run: Any, properties: dict[str, Any], required: list[str]) -> Tool:
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name=name, description=description, parameters=parameters, run=run)


_OWN = {
    tool.name: tool
    for tool in (
        _tool(
            "replace_fact",
            "Put a new fact in the place of one that speaks of the same thing and has the same applies_to.",
            replace_fact,
            {"fact_id": ID, **FACT, "evidence": EVIDENCE, "reason": REASON},
            ["fact_id", *FACT_REQUIRED, "evidence", "reason"],
        ),
        _tool(
            "retire_fact",
            "Take back a fact that is wrong or no longer so, where nothing takes its place.",
            retire_fact,
            {"fact_id": ID, "evidence": EVIDENCE, "reason": REASON},
            ["fact_id", "evidence", "reason"],
        ),
        _tool(
            "write_fact",
            "Write one fact. The same fact again adds its evidence to the one that is there.",
            write_fact,
            {**FACT, "evidence": EVIDENCE},
            [*FACT_REQUIRED, "evidence"],
        ),
    )
}


def tools() -> dict[str, Tool]:
    """Every tool of the steward's by its name, in an order that is the same each time."""
    return {tool.name: tool for tool in registry.all_tools() if tool.reads_only} | _OWN
