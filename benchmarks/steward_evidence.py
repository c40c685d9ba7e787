"""Whether the evidence of facts holds, read from the rows themselves: apart from the judge that let the facts be
written, which would agree with itself.

A piece of evidence counts as valid when the row that it cites is there, is the same person's, was seen by a model and
not rewound, is of the role that its kind asks for, is no bare question where the fact is a view of theirs, and has at
least one word of the fact in it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_ROWS = """
    SELECT fact.text, fact.kind, fact.aspect, fact.tone, evidence.kind, fact.owner_id, evidence.owner_id,
           said.owner_id, said.thread_id, said.role, said.text, said.is_error, said.model_visible, said.left_because,
           said.meta ->> 'source', yes.owner_id, yes.thread_id, yes.role, yes.text, yes.id > said.id,
           generation.owner_id, generation.ended
    FROM memory_factevidence evidence
    JOIN memory_fact fact ON fact.id = evidence.fact_id
    LEFT JOIN threads_message said ON said.id = evidence.message_id
    LEFT JOIN threads_message yes ON yes.id = evidence.accepted_by_id
    LEFT JOIN threads_generation generation ON generation.id = evidence.generation_id
    WHERE fact.owner_id = ANY(%s)
    ORDER BY evidence.id
"""
VIEWS = ("preference", "decision", "identity")
# Words of sentences about anything, and those with which the emulator begins its facts.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an the and or but of in on at to for from with by as is are was were be been am not no do does did has have"
        " i you he she it we they my your his her its our their me him them this that these those will would can could"
        " had shoul user said says",
    )
)
_WORD = re.compile(r"[^\W\d_]+|\d+")


@dataclass(frozen=True)
class Proved:
    """How many pieces of evidence there are, how many hold, and the mean share of a fact's words that its row has."""

    pieces: int
    valid: int
    words_share: float | None


def proved(owner_ids: Sequence[int]) -> Proved:
    """Read all evidence of some people's facts and judge each piece."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(_ROWS, [list(owner_ids)])
        rows = cursor.fetchall()
    shares = [words_share(row[0], row[10] if row[10] is not None else "") for row in rows if row[10] is not None]
    mean = sum(shares) / len(shares) if shares else None
    return Proved(len(rows), sum(holds(row) for row in rows), mean)


def holds(row: Sequence[Any]) -> bool:
    """Whether one piece of evidence does, a row of the statement above."""
    text, kind, aspect, tone, how, owner, owner_of_evidence = row[:7]
    said_owner, thread, role, words, is_error, visible, left_because, source = row[7:15]
    yes_owner, yes_thread, yes_role, yes_words, comes_after, generation_owner, ended = row[15:]
    if owner_of_evidence != owner:
        return False
    if said_owner is None:
        return how == "observed-outcome" and kind != "about-user" and generation_owner == owner and ended is not None
    if said_owner != owner or not visible or left_because == "superseded" or (source or "").startswith("framework"):
        return False
    if how == "max-stated":
        decides = kind == "about-user" and (aspect in VIEWS or tone == "decision")
        fits = role in ("user", "tool") and not is_error and not (decides and _is_bare_question(words))
    elif how == "max-accepted":
        of_both = (yes_owner, yes_thread, yes_role) == (owner, thread, "user") and comes_after
        fits = of_both and role == "assistant" and not _is_bare_question(yes_words)
    else:
        fits = role == "tool" and not is_error and kind != "about-user"
    return bool(fits and words_share(text, words) > 0)


def words_share(fact: str, words: str) -> float:
    """The share of a fact's words, common ones not counted, that stand in a row."""
    wanted = _words(fact)
    return len(wanted & _words(words)) / len(wanted) if wanted else 0.0


def _words(text: str) -> set[str]:
    """Words by their first five letters, so that most forms of one are the same; of Chinese, each two signs."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if word.isascii():
            found |= {word[:5]} - _COMMON
        else:
            found |= {word[place : place + 2] for place in range(max(1, len(word) - 1))}
    return found


def _is_bare_question(words: str) -> bool:
    said = words.strip()
    return said.endswith(("?", "？")) and not re.search(r"[.!。！\n]", said)
