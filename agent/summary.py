"""The structured summary of a generation: what is asked for, what is accepted, and what takes its place.

Ten numbered sections. Ids are checked against the thread and quotations against the user's own rows: what cannot be
found is removed, because a summary must not invent what somebody said.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from maxclaw.text import head
from threads.models import Message
from threads.transcript import fold

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
STANDING, NEXT_STEP = 2, 9
NOTHING = "None."
WITHDRAWN = "Withdrawn:"
LINE_MAX_CHARS = 400
RULE_MADE_LINES = 12
INDEX_LINE_MAX_CHARS = 100

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
- Never put words into the user's mouth: quotation marks in any section stand only around words that are in a message.
- Section 10 names each resource that was reached (its name or path), how, and the message ids of the first call that
  reached it and of its result. Do not copy results: they can be found again with these names and ids.
- Cite message ids as (m:123), from this list of the messages above:

{index}
"""
AGAIN = "\nYour last attempt lacked section {missing}. Write all ten."

# A number with its own title: a numbered list inside a section is no heading.
_HEADING = re.compile(
    "|".join(
        rf"^[#*\s]*(?P<n{number}>{number})[.)、]\s*\**\s*{re.escape(title)}[*:：\s]*$"
        for number, title in enumerate(TITLES, 1)
    ),
    re.MULTILINE | re.IGNORECASE,
)
_ID = re.compile(r"\s*[(\[（【]?\bm:(\d+)\b[)\]）】]?")
_QUOTATION = re.compile(r'"([^"\n]{2,})"|“([^”\n]{2,})”|「([^」\n]{2,})」')
_QUOTED_LINE = re.compile(r'["“「](?P<words>[^"”」\n]{2,})["”」].*?m:(?P<id>\d+)')


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
    """One short line for each row, so that the summary can cite what it cannot see the id of."""
    return "\n".join(f"m:{row.pk} {row.role}: {head(_one_line(row), INDEX_LINE_MAX_CHARS)}" for row in rows)


def missing_sections(text: str) -> list[int]:
    """Numbers of the sections that a summary lacks, or that stand out of order."""
    found = [_number(match) for match in _HEADING.finditer(text)]
    position, missing = 0, []
    for number in range(1, len(TITLES) + 1):
        if number in found[position:]:
            position += found[position:].index(number) + 1
        else:
            missing.append(number)
    return missing


def sections_in(text: str) -> dict[int, str]:
    """The bodies of the sections found in a text, by number; empty ones are left out."""
    matches = list(_HEADING.finditer(text))
    found: dict[int, str] = {}
    ends = [following.start() for following in matches[1:]] + [len(text)]
    for match, end in zip(matches, ends, strict=False):
        body = text[match.end() : end].strip()
        if body and body != NOTHING:
            found[_number(match)] = body
    return found


def _number(heading: re.Match[str]) -> int:
    return int(heading.group((heading.lastgroup or "").strip()))


def check(text: str, known_ids: Callable[[set[int]], set[int]], said_by_user: Callable[[str], bool]) -> Summary:
    """Remove what cannot be found: ids that `known_ids` does not return, quotations that `said_by_user` denies.

    A quotation counts as the user's in section 2, and wherever its line names the user. The text has all sections.
    """
    text = text[_HEADING.search(text).start() :]  # type: ignore[union-attr]  # all ten sections were found before
    known = known_ids({int(number) for number in _ID.findall(text)})
    summary = Summary(text="")
    lines: list[str] = []
    section = 0
    for line in text.splitlines():
        heading = _HEADING.match(line)
        if heading and _number(heading) == section + 1:
            section += 1
            lines.append(f"{section}. {TITLES[section - 1]}")
            continue
        kept = _checked_line(line, section, known, said_by_user, summary)
        if kept is not None:
            lines.append(kept)
    summary.text = "\n".join(lines).strip()
    return summary


def _checked_line(
    line: str, section: int, known: set[int], said_by_user: Callable[[str], bool], summary: Summary
) -> str | None:
    def id_or_nothing(match: re.Match[str]) -> str:
        if int(match.group(1)) in known:
            return match.group(0)
        summary.removed += 1
        return ""

    line = _ID.sub(id_or_nothing, line).rstrip()
    if section == STANDING:
        return _standing_line(line, said_by_user, summary)
    if re.search(r"\buser\b|用户|\bthe person\b", line, re.IGNORECASE):
        for groups in _QUOTATION.findall(line):
            words = next(filter(None, groups))
            if not said_by_user(words):
                summary.removed += 1
                return None
    return line


def _standing_line(line: str, said_by_user: Callable[[str], bool], summary: Summary) -> str | None:
    quoted = [next(filter(None, groups)) for groups in _QUOTATION.findall(line)]
    if not quoted:
        return line if not line.strip(" -*") or NOTHING in line else None
    if not all(said_by_user(words) for words in quoted):
        summary.removed += 1
        return None
    withdrawn = WITHDRAWN.lower() in line.lower()
    for words in quoted:
        found = _QUOTED_LINE.search(line)
        if withdrawn:
            summary.withdrawn.append(words)
        elif found:
            summary.standing.append(Standing(words, int(found.group("id"))))
    return line


def carried(before: Sequence[Standing], summary: Summary) -> list[Standing]:
    """The standing instructions of the next opening: those before, less what the user withdrew, and the new ones."""
    gone = {fold(words) for words in summary.withdrawn}
    kept: dict[str, Standing] = {}
    for standing in [*before, *summary.standing]:
        if fold(standing.text) not in gone:
            kept.setdefault(fold(standing.text), standing)
    return list(kept.values())


def by_rule(rows: Sequence[Message], earlier: str = "") -> Summary:
    """A summary made without a model, so that compaction never blocks a conversation: first and last words, what
    looks like an instruction, and where each tool was called. Poorer than a model's, and true."""
    said = [row for row in rows if row.role == Message.Role.USER]
    answers = [row for row in rows if row.role == Message.Role.ASSISTANT and row.text.strip()]
    results = [row for row in rows if row.role == Message.Role.TOOL]
    standing = [
        Standing(sentence, row.pk)
        for row in said
        for sentence in _sentences(row.text)
        if _INSTRUCTION_WORDS.search(sentence)
    ][-RULE_MADE_LINES:]
    failed = [row for row in results if row.is_error]
    sections: dict[int, list[str]] = {
        1: [_line(row) for row in _first_and_last(said)],
        2: [f'- "{found.text}" (m:{found.message_id})' for found in standing],
        4: [_line(row) for row in answers[-2:]],
        7: [_line(row) for row in failed[-RULE_MADE_LINES:]],
        10: [_line(row) for row in [row for row in rows if '"tool_use"' in (row.wire or "")][:RULE_MADE_LINES]],
    }
    # What the context before knew goes on: nobody else holds it now.
    before = sections_in(earlier)
    before.pop(NEXT_STEP, None)
    parts = []
    for number, title in enumerate(TITLES, 1):
        body = "\n".join(dict.fromkeys([*before.get(number, "").splitlines(), *sections.get(number, [])])) or NOTHING
        parts.append(f"{number}. {title}\n{body}")
    return Summary("\n\n".join(parts), standing)


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
    return _flat(row.text) or ("(tool call)" if row.role == Message.Role.ASSISTANT else "(no text)")


def _flat(text: str) -> str:
    return " ".join(text[: LINE_MAX_CHARS * 8].split())
