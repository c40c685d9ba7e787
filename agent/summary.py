"""The structured summary of a generation: what is asked for, what is accepted, and what takes its place.

Ten numbered sections; `summary_check.py` says what of them is accepted.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from maxclaw.text import head
from threads.models import Message
from threads.transcript import string_leaves

TITLES = (
    "The request",
    "Standing instructions and corrections in the user's words",
    "Decisions and their reasons",
    "Where the work stands",
    "Files and artefacts",
    "Errors and their fixes",
    "What failed",
    "Questions open to the user",
    "The next step",
    "How to reach each resource used",
)
REQUEST, STANDING, QUESTIONS, NEXT_STEP = 1, 2, 8, 9
NOTHING = "None."
WITHDRAWN = "Withdrawn:"
LINE_MAX_CHARS = 400
ARGUMENT_MAX_CHARS = 200
RULE_MADE_LINES = 12
# Of a section that rules carry on, so that no number of generations outgrows a context.
RULE_MADE_SECTION_MAX_CHARS = 4_000
INDEX_LINE_MAX_CHARS = 100
INDEX_MAX_CHARS = 12_000
INDEX_FIRST_CHARS = 3_000
LEFT_OUT = "[{count} messages between are not listed: cite none of them]"

INSTRUCTION = """\
The context is about to be renewed: this conversation goes on with your summary in place of the messages above. Write
that summary now and nothing else; call no tool. Write it in the language of the conversation, under these ten numbered
sections, each starting on a line of its own exactly as listed:

{titles}

Rules:
- A section with nothing to say says "{nothing}".
- Tell what is finished from what is open. Finished work is told as done and never phrased as a request.
- Section 2 quotes the user word for word, one quotation a line, in double quotation marks, with the id of the message
  it stands in: - "the words" (m:123). Keep what still holds. When the user withdrew one, add a line: - {withdrawn} "the
  words" (m:124), with the id of the message that withdraws it.
- Never put words into anybody's mouth: quotation marks in any section stand only around words that are in a message,
  in section 1 in one of the user's; an id behind them is that message's.
- Section 10 names each resource that was reached (its name or path), how, and the message ids of the first call that
  reached it and of its result. Do not copy results: they can be found again with these names and ids.
- Cite message ids as (m:123), from this list of the messages above:

{index}
"""
AGAIN = "\nYour last attempt lacked section {missing}. Write all ten."

# A number with its own title: a numbered list inside a section is no heading.
HEADING = re.compile(
    "|".join(
        rf"^[#*\s]*(?P<n{number}>{number})[.)、]\s*\**\s*{re.escape(title)}[*:：\s]*$"
        for number, title in enumerate(TITLES, 1)
    ),
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True)
class Standing:
    """An instruction that holds until the user withdraws it: words of a user row, and that row's id."""

    text: str
    message_id: int


@dataclass
class Summary:
    """A checked summary: `text` with all ten sections, and the standing instructions found in section 2."""

    text: str
    standing: list[Standing] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    removed: int = 0  # ids and quotations that could not be found


def question(rows: Sequence[Message], missing: Sequence[int] = ()) -> str:
    """The words that ask for the summary; `missing` are the sections that a first attempt lacked."""
    titles = "\n".join(f"{number}. {title}" for number, title in enumerate(TITLES, 1))
    asked = INSTRUCTION.format(titles=titles, nothing=NOTHING, withdrawn=WITHDRAWN, index=index(rows))
    return asked + (AGAIN.format(missing=", ".join(map(str, missing))) if missing else "")


def index(rows: Sequence[Message]) -> str:
    """One short line for a row, so that the summary can cite what it cannot see the id of: the first rows and the
    newest, at most INDEX_MAX_CHARS characters in all, and how many stand between."""
    first = _lines_within(rows, INDEX_FIRST_CHARS)
    rest = rows[len(first) :]
    newest = _lines_within(reversed(rest), INDEX_MAX_CHARS - INDEX_FIRST_CHARS - len(LEFT_OUT) - 20)[::-1]
    left_out = len(rest) - len(newest)
    return "\n".join([*first, *([LEFT_OUT.format(count=left_out)] if left_out else []), *newest])


def _lines_within(rows: Iterable[Message], room: int) -> list[str]:
    lines: list[str] = []
    for row in rows:
        line = f"m:{row.pk} {row.role}: {head(_one_line(row), INDEX_LINE_MAX_CHARS)}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return lines


def missing_sections(text: str) -> list[int]:
    """Numbers of the sections that a summary lacks, or that stand out of order."""
    found = [number_of(match) for match in HEADING.finditer(text)]
    position, missing = 0, []
    for number in range(1, len(TITLES) + 1):
        if number in found[position:]:
            position += found[position:].index(number) + 1
        else:
            missing.append(number)
    return missing


def sections_in(text: str) -> dict[int, str]:
    """The bodies of the sections found in a text, by number; empty ones are left out."""
    matches = list(HEADING.finditer(text))
    found: dict[int, str] = {}
    ends = [following.start() for following in matches[1:]] + [len(text)]
    for match, end in zip(matches, ends, strict=False):
        body = text[match.end() : end].strip()
        if body and body != NOTHING:
            found[number_of(match)] = body
    return found


def number_of(heading: re.Match[str]) -> int:
    """The section that a heading is of."""
    return int(heading.group((heading.lastgroup or "").strip()))


def by_rule(rows: Sequence[Message], earlier: str = "") -> Summary:
    """A summary made without a model, so that compaction never blocks a conversation: first and last words, what
    looks like an instruction, and where each tool was called. Poorer than a model's, and true. `earlier` is the
    summary of what was said before: what is older goes from a section that is full, but for instructions, to which no
    new ones are added then."""
    said = [row for row in rows if row.role == Message.Role.USER]
    answers = [row for row in rows if row.role == Message.Role.ASSISTANT and row.text.strip()]
    results = [row for row in rows if row.role == Message.Role.TOOL]
    standing = [
        Standing(sentence, row.pk)
        for row in said
        for sentence in _sentences(row.text)
        if _INSTRUCTION_WORDS.search(sentence)
    ][-RULE_MADE_LINES:]
    # What the context before knew goes on: nobody else holds it now.
    before = sections_in(earlier)
    if rows:
        before.pop(NEXT_STEP, None)
    room = RULE_MADE_SECTION_MAX_CHARS - len(before.get(2, ""))
    while standing and sum(len(found.text) for found in standing) > room:
        standing.pop(0)
    failed = [row for row in results if row.is_error]
    sections: dict[int, list[str]] = {
        1: [_line(row) for row in _first_and_last(said)],
        2: [f'- "{found.text}" (m:{found.message_id})' for found in standing],
        4: [_line(row) for row in answers[-2:]],
        7: [_line(row) for row in failed[-RULE_MADE_LINES:]],
        10: [f"- {_calls(row)} (m:{row.pk})" for row in [row for row in rows if _calls(row)][:RULE_MADE_LINES]],
    }
    parts = []
    for number, title in enumerate(TITLES, 1):
        lines = list(dict.fromkeys([*before.get(number, "").splitlines(), *sections.get(number, [])]))
        if sections.get(number) and number != 2:
            lines = _newest(lines)
        parts.append(f"{number}. {title}\n" + ("\n".join(lines) or NOTHING))
    return Summary("\n\n".join(parts), standing)


def _newest(lines: Sequence[str]) -> list[str]:
    """The first line and the newest ones, as many as a section that rules carry on may have."""
    kept: list[str] = []
    room = RULE_MADE_SECTION_MAX_CHARS - len(lines[0])
    for line in reversed(lines[1:]):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return [lines[0], *reversed(kept)]


_INSTRUCTION_WORDS = re.compile(
    r"\b(always|never|don't|do not|from now on|make sure|must)\b|以后|今后|不要|总是|必须|务必|一律", re.IGNORECASE
)


def _sentences(text: str) -> list[str]:
    found = re.split(r"(?<=[.!?。！？])\s*|\n+", text[:20_000])
    return [
        sentence.strip() for sentence in found if 3 < len(sentence.strip()) <= LINE_MAX_CHARS and '"' not in sentence
    ]


def _first_and_last(rows: Sequence[Message]) -> list[Message]:
    return list(dict.fromkeys([*rows[:1], *rows[-1:]]))


def _line(row: Message) -> str:
    return f"- {head(_one_line(row), LINE_MAX_CHARS)} (m:{row.pk})"


def _one_line(row: Message) -> str:
    return _flat(row.text) or (_calls(row) or "(tool call)" if row.role == Message.Role.ASSISTANT else "(no text)")


def _calls(row: Message) -> str:
    """The tools that a row calls, each with the first string among its arguments: what it reached, most often."""
    if row.wire is None or '"tool_use"' not in row.wire:
        return ""
    calls = [block for block in json.loads(row.wire) if block.get("type") == "tool_use"]
    return head("; ".join(map(_call, calls)), LINE_MAX_CHARS)


def _call(block: dict[str, Any]) -> str:
    argument = head(_flat(next(string_leaves(block.get("input")), "")), ARGUMENT_MAX_CHARS)
    return f"{block.get('name')}: {argument}" if argument else f"{block.get('name')}"


def _flat(text: str) -> str:
    return " ".join(text[: LINE_MAX_CHARS * 8].split())
