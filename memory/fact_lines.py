"""A fact as a model reads it, or what is to become one: always with what it applies to and its tone."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from maxclaw.text import head
from memory.fact_drafts import APPLIES_TO_MAX_CHARS, PROJECT_MAX_CHARS, TEXT_MAX_CHARS
from memory.fact_search import FactHit

STALE = "its words were rewritten or taken back since"


def line(fact: FactHit) -> str:
    """One fact in one line, whole unless it was imported longer than facts are written."""
    project = head(_in_a_line(fact.project), PROJECT_MAX_CHARS)
    return described(
        f"f:{fact.fact_id}",
        fact.text,
        said=fact.said,
        tone=fact.tone,
        sort=fact.aspect or fact.kind,
        applies_to=fact.applies_to,
        more=(f"project: {project}" if project else "", STALE if fact.stale else ""),
    )


def described(
    key: str, text: str, *, said: datetime, tone: str, sort: str, applies_to: str, more: Sequence[str] = ()
) -> str:
    """A line: the tagged id by which a model names it, what is to be known of it, and its words. `said` is in the
    person's own zone; `more` may have blank ones among it."""
    applies = head(_in_a_line(applies_to), APPLIES_TO_MAX_CHARS)
    about = [
        f"{said:%Y-%m-%d}",
        tone,
        sort,
        f"applies to: {applies}" if applies else "in general",
        *more,
    ]
    return f"{key} [{'; '.join(filter(None, about))}] {head(_in_a_line(text), TEXT_MAX_CHARS)}"


def lines_within(facts: Sequence[FactHit], room: int) -> list[str]:
    """The lines of the first facts that fit into `room` characters together, line ends counted."""
    return within(map(line, facts), room)


def within(lines: Iterable[str], room: int) -> list[str]:
    """The first lines that fit into `room` characters together, line ends counted."""
    fitting: list[str] = []
    for one in lines:
        room -= len(one) + 1
        if room < 0:
            break
        fitting.append(one)
    return fitting


def _in_a_line(text: str) -> str:
    return " ".join(text.split())
