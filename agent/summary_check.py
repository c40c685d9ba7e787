"""What of a model's summary is accepted: a summary must not invent what somebody said, or where it stands.

Message ids, and words in quotation marks of any kind, are looked up in the record. What cannot be found is removed.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from agent.summary import HEADING, NOTHING, STANDING, TITLES, WITHDRAWN, Standing, Summary, number_of
from threads.transcript import fold

REMOVED = "[...]"

_ID = re.compile(r"\s*[(\[（【]?\bm:(\d+)\b[)\]）】]?")
# The mark after a digit is for inches; an apostrophe stands between letters or after one.
_QUOTATION = re.compile(
    r'(?<![0-9])"(?P<straight>[^"\n]{2,})"'
    r"|“(?P<curly>[^”\n]{2,})”"
    r'|„(?P<low>[^“”"\n]{2,})[“”"]'
    r"|(?<!\w)‘(?P<single>(?:[^‘’\n]|(?<=\w)’(?=\w)){2,})’(?!\w)"
    r"|「(?P<corner>[^」\n]{2,})」"
    r"|『(?P<double_corner>[^』\n]{2,})』"
    r"|«(?P<angle>[^«»\n]{2,})»"
    r"|»(?P<inverted>[^«»\n]{2,})«"
    r"|‹(?P<single_angle>[^‹›\n]{2,})›"
)
# Words for the user in the languages that a summary may be written in.
_USER = re.compile(
    r"\b(?:user|the person|nutzer|benutzer|utilisateur|utilisatrice|usuario|usuaria|utente|пользовател\w+)\b"
    r"|用户|用戶|使用者|ユーザー|利用者|사용자",
    re.IGNORECASE,
)
_AROUND = " \t.,。，、!！?？;；:：…"


class Record(Protocol):
    """What a summary may rest on: the rows of a conversation, and the instructions that it holds already."""

    standing: Sequence[Standing]

    def known(self, ids: set[int]) -> set[int]:
        """Those ids that are messages of the conversation or of what it was copied from."""

    def said_by_user(self, words: str) -> list[int]:
        """Ids of the user's messages that hold the words, ascending."""

    def said(self, words: str) -> bool:
        """Whether any message holds the words, or quotes them."""


def check(text: str, record: Record) -> Summary:
    """Remove what the record does not have. The text has all ten sections.

    In section 2 each quotation must be the user's, and its id that of the message it stands in: another id is put
    right. Elsewhere a line that names the user goes when it quotes what the user did not write; a quotation that
    stands in no message at all is replaced by REMOVED.
    """
    start = HEADING.search(text)
    assert start is not None  # all ten sections were found before
    text = text[start.start() :]
    known = record.known({int(number) for number in _ID.findall(text)})
    summary = Summary(text="")
    lines: list[str] = []
    section = 0
    for line in text.splitlines():
        heading = HEADING.match(line)
        if heading and number_of(heading) == section + 1:
            section += 1
            lines.append(f"{section}. {TITLES[section - 1]}")
            continue
        line = _with_known_ids(line, known, summary)
        kept = _standing_line(line, record, summary) if section == STANDING else _line(line, record, summary)
        if kept is not None:
            lines.append(kept)
    summary.text = "\n".join(lines).strip()
    return summary


def carried(before: Sequence[Standing], summary: Summary) -> list[Standing]:
    """The standing instructions of the next opening: those before, less what the user withdrew, and the new ones."""
    gone = {_key(words) for words in summary.withdrawn}
    kept: dict[str, Standing] = {}
    for standing in [*before, *summary.standing]:
        if _key(standing.text) not in gone:
            kept.setdefault(_key(standing.text), standing)
    return list(kept.values())


def _key(words: str) -> str:
    """Words as they are compared: without case, and without the marks around them."""
    return fold(words).strip(_AROUND)


def _words(quotation: re.Match[str]) -> str:
    return str(next(filter(None, quotation.groups())))


def _with_known_ids(line: str, known: set[int], summary: Summary) -> str:
    def id_or_nothing(match: re.Match[str]) -> str:
        if int(match.group(1)) in known:
            return match.group(0)
        summary.removed += 1
        return ""

    return _ID.sub(id_or_nothing, line).rstrip()


def _line(line: str, record: Record, summary: Summary) -> str | None:
    names_user = _USER.search(_QUOTATION.sub("", line)) is not None
    if names_user and not all(
        record.said_by_user(key) for quotation in _QUOTATION.finditer(line) if (key := _key(_words(quotation)))
    ):
        summary.removed += 1
        return None

    def quotation_or_gap(quotation: re.Match[str]) -> str:
        key = _key(_words(quotation))
        if not key or record.said(key):
            return quotation.group(0)
        summary.removed += 1
        return REMOVED

    return line if names_user else _QUOTATION.sub(quotation_or_gap, line)


def _standing_line(line: str, record: Record, summary: Summary) -> str | None:
    quoted = [words for quotation in _QUOTATION.finditer(line) if _key(words := _words(quotation))]
    if not quoted:
        return line if not line.strip(" -*") or NOTHING in line else None
    already = {_key(standing.text): standing for standing in record.standing}
    holders = [_holders(words, record, already) for words in quoted]
    if not all(holders):
        summary.removed += 1
        return None
    if WITHDRAWN.lower() in line.lower():
        # The id is that of the message that withdraws it, so it need not hold these words.
        summary.withdrawn += quoted
        return line
    cited = [int(number) for number in _ID.findall(line)]
    found = [
        Standing(words, next((number for number in cited if number in ids), ids[-1]))
        for words, ids in zip(quoted, holders, strict=True)
    ]
    summary.standing += found
    if cited and set(cited) <= {number for ids in holders for number in ids}:
        return line
    summary.removed += len(cited)
    return "\n".join(f'- "{standing.text}" (m:{standing.message_id})' for standing in found)


def _holders(words: str, record: Record, already: dict[str, Standing]) -> list[int]:
    """The messages that words of the user's stand in. What is carried from opening to opening was checked when it came
    in, and holds on when its message is gone."""
    key = _key(words)
    return record.said_by_user(key) or ([already[key].message_id] if key in already else [])
