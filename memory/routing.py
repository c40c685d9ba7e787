"""Where what is worth keeping is written: one registry, from which every prompt that speaks of it is rendered, so that
no two can disagree.

Memory holds people. What an agent verified about a project belongs beside the signal that says it has gone stale: in
the project's documents, where the next commit mends it, and never in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass

SYSTEM, STEWARD, REMEMBER, SHADOW, TRIAGE = "system", "steward", "remember", "shadow", "triage"

NOT_MEMORY = (
    "recipes",
    "configuration",
    "deployment state and commits",
    "API usage",
    "reproduction steps",
    "repairs",
    "project progress",
)
KINDS = {
    "about-user": "a fact about the person, who they are, or a preference, a decision or a correction of theirs",
    "event": (
        "an event with its reason: what happened, who proposed it, who refused it or went along, and why, so that "
        "where the reason does not hold the question is open again"
    ),
    "pointer": (
        "a pointer to a document: where it is, never what it says. First confirm with a read-only tool that its path "
        "exists; the result of that call is the evidence"
    ),
}
VIEWS = (
    "Each view of the person's carries what it applies to (applies_to) and its tone: a passing remark or a decision. A "
    "complaint in passing is no decision, and a decision outranks a remark. Views that apply to different things stand "
    "side by side. A later view replaces an earlier one only when both speak of the same thing and apply to the same "
    "thing."
)


@dataclass(frozen=True)
class Sink:
    """One place where something may be kept. `heading` opens the list of what goes there; `accepts` and `rejects` are
    whole clauses, without a full stop; `written_with` names the tool that writes it, blank where no tool does."""

    name: str
    heading: str
    accepts: tuple[str, ...]
    rejects: tuple[str, ...]
    written_with: str = ""


SINKS = (
    Sink(
        name="memory",
        heading="What goes into memory",
        accepts=tuple(f"{kind}: {what}" for kind, what in KINDS.items()),
        rejects=(
            f"{', '.join(NOT_MEMORY)}: they belong into documents. Such things are not and must not be written to "
            "memory",
            "passwords, keys and other secrets",
            "what nobody said, accepted or verified: every fact names its evidence, a question decides nothing, and "
            "silence accepts nothing",
        ),
    ),
    # No tool writes the documents of a project so far; the one that will is named here.
    Sink(
        name="project documents",
        heading="What goes into the documents of a project",
        accepts=(
            "what an agent verified about a project (its state, and observations with their conditions), written by "
            "the conversation that verified it, in the same turn",
        ),
        rejects=("what concerns the person and not the project", "what no call has verified"),
    ),
    Sink(
        name="project rules",
        heading="What goes into the rules of a project",
        accepts=("what the person decided or demands for a whole project, when they ask for it to be written there",),
        rejects=("what an agent found out by itself",),
    ),
    Sink(
        name="conversation",
        heading="What stays in the conversation",
        accepts=(
            "everything else, such as knowledge that belongs to no project: it stays where it was said, and is found "
            "there again by searching",
        ),
        rejects=(),
    ),
)

_LEADS = {
    SYSTEM: "What is worth keeping beyond this conversation has one place each.",
    STEWARD: "What is worth keeping has one place each. You write memory, and nothing else.",
    REMEMBER: (
        "Remember one thing about the person, because they asked for it in so many words: in their newest message, in "
        "what they answered to a question card since, or before, and then quote these words in asked_with. Without "
        "such words of theirs do not call this. They are the evidence. What may be remembered, and what has another "
        "place:"
    ),
    SHADOW: "What is worth keeping has one place each. You propose what memory should hold, and nothing else.",
    TRIAGE: "What is worth keeping has one place each. You judge what memory holds already.",
}
READERS = tuple(_LEADS)


def render_for(reader: str) -> str:
    """What a prompt says of write routing. `reader` is one of READERS (KeyError otherwise); they differ in the first
    paragraph alone."""
    return "\n\n".join([_LEADS[reader], *map(_rendered, SINKS), VIEWS])


def _rendered(sink: Sink) -> str:
    tool = f" (written with {sink.written_with})" if sink.written_with else ""
    lines = [f"{sink.heading}{tool}:", *_items(sink.accepts)]
    if sink.rejects:
        lines += ["What does not:", *_items(sink.rejects)]
    return "\n".join(lines)


def _items(clauses: Sequence[str]) -> list[str]:
    return [f"- {clause}." for clause in clauses]
