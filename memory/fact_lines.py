"""A fact as a model reads it: always with what it applies to and its tone."""

from collections.abc import Sequence

from maxclaw.text import head
from memory.fact_drafts import APPLIES_TO_MAX_CHARS, PROJECT_MAX_CHARS, TEXT_MAX_CHARS
from memory.fact_search import FactHit

TONES = {"decision": "a decision", "remark": "a passing remark"}
STALE = "its words were rewritten or taken back since"


def line(fact: FactHit) -> str:
    """One fact in one line, whole unless it was imported longer than facts are written."""
    applies = head(_in_a_line(fact.applies_to), APPLIES_TO_MAX_CHARS)
    project = head(_in_a_line(fact.project), PROJECT_MAX_CHARS)
    about = [
        f"{fact.created:%Y-%m-%d}",
        TONES[fact.tone],
        fact.aspect or fact.kind,
        f"applies to: {applies}" if applies else "applies in general",
        f"project: {project}" if project else "",
        STALE if fact.stale else "",
    ]
    return f"f:{fact.fact_id} [{'; '.join(filter(None, about))}] {head(_in_a_line(fact.text), TEXT_MAX_CHARS)}"


def lines_within(facts: Sequence[FactHit], room: int) -> list[str]:
    """The lines of the first facts that fit into `room` characters together, line ends counted."""
    lines: list[str] = []
    for fact in facts:
        text = line(fact)
        room -= len(text) + 1
        if room < 0:
            break
        lines.append(text)
    return lines


def _in_a_line(text: str) -> str:
    return " ".join(text.split())
