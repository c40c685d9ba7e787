"""What of a model's summary is accepted: a summary must not invent what somebody said, or where it stands.

Message ids, and words in quotation marks of any kind, are looked up in the record. What cannot be found is removed.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from agent.summary import HEADING, NOTHING, STANDING, TITLES, WITHDRAWN, Standing, Summary, number_of
from agent.summary_ids import cited, storable, without_unknown
from threads.transcript import fold

REMOVED = "[...]"

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
    r"|＂(?P<wide>[^＂\n]{2,})＂"
    r"|‚(?P<low_single>[^‚‘’\n]{2,})[‘’]"
    r"|”(?P<same>[^“”\n]{2,})”"
    r"|“(?P<same_open>[^“”\n]{2,})“"
    r"|(?<!`)``(?P<typeset>[^`'\n]{2,})''"
)
# These quote where somebody speaks; elsewhere they stand around code.
_PLAIN_MARKS = re.compile(
    r"(?<!\w)'(?!\s|\d0s\b)(?P<plain>(?:[^'\n]|(?<=\w)'(?=\w)){2,}?)(?<!\s)'(?!\w)"
    r"|(?P<ticks>`+)(?P<code>[^`\n]{2,})(?P=ticks)"
)
_BLOCK = re.compile(r"\s*(?:[-*]\s+)?>[>\s]*")
# Where a quotation begins that its own line does not end.
_OPENED = re.compile(r'(?<![0-9\\])"|[“„”「『«»‹＂‚`]|(?<!\w)[‘\']')
_NEW_ITEM = re.compile(r"\s*(?:[-*•>]|\d+[.)、])\s|\s*$")
QUOTED_LINES_MAX = 6
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
    known = record.known(storable(cited(text)))
    summary = Summary(text="")
    lines: list[str] = []
    section = 0
    introduced = False  # a line that names the user, and ends in a colon, stands before
    for line in _with_whole_quotations(text.splitlines()):
        heading = HEADING.match(line)
        if heading and number_of(heading) == section + 1:
            section += 1
            lines.append(f"{section}. {TITLES[section - 1]}")
            introduced = False
            continue
        line, unknown = without_unknown(line, known)
        summary.removed += unknown
        if section == STANDING:
            kept = _standing_line(line, record, summary)
        else:
            kept = _line(line, record, summary, introduced=introduced)
            if line.strip() and not _BLOCK.match(line):
                introduced = _names_user(line) and line.rstrip(" *_").endswith((":", "："))
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


def _with_whole_quotations(lines: Sequence[str]) -> list[str]:
    """The lines, with a quotation that goes on in the next ones in one line."""
    joined: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        for further in range(1, QUOTED_LINES_MAX):
            if not _OPENED.search(_QUOTATION.sub("", line)):
                break
            after = lines[place : place + further]
            if len(after) < further or any(HEADING.match(next) or _NEW_ITEM.match(next) for next in after):
                break
            whole = " ".join([line, *(part.strip() for part in after)])
            if _count(whole) > _count(line) + sum(map(_count, after)):
                line, place = whole, place + further
                break
        joined.append(line)
    return joined


def _count(line: str) -> int:
    """How many quotations a line has."""
    return sum(1 for pattern in (_QUOTATION, _PLAIN_MARKS) for _quotation in pattern.finditer(line))


def _names_user(line: str) -> bool:
    return _USER.search(_PLAIN_MARKS.sub("", _QUOTATION.sub("", line))) is not None


def _line(line: str, record: Record, summary: Summary, *, introduced: bool) -> str | None:
    block = _BLOCK.match(line)
    if block:
        key = _key(line[block.end() :])
        if not key or (record.said_by_user(key) if introduced else record.said(key)):
            return line
        summary.removed += 1
        return None
    of_user = introduced or _names_user(line)
    if of_user and not _only_users_words(line, record):
        summary.removed += 1
        return None

    def quotation_or_gap(quotation: re.Match[str]) -> str:
        key = _key(_words(quotation))
        if not key or record.said(key):
            return quotation.group(0)
        summary.removed += 1
        return REMOVED

    return line if of_user else _QUOTATION.sub(quotation_or_gap, line)


def _only_users_words(line: str, record: Record) -> bool:
    """Whether all that a line quotes is the user's. One word between backticks is a name of something, which anybody
    may have written."""
    quoted = [key for quotation in _QUOTATION.finditer(line) if (key := _key(_words(quotation)))]
    for quotation in _PLAIN_MARKS.finditer(_QUOTATION.sub("", line)):
        key = _key(quotation["plain"] or quotation["code"])
        if quotation["code"] and len(key.split()) == 1 and record.said(key):
            continue
        if key:
            quoted.append(key)
    return all(record.said_by_user(key) for key in quoted)


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
    named = cited(line)
    found = [
        Standing(words, next((number for number in named if number in ids), ids[-1]))
        for words, ids in zip(quoted, holders, strict=True)
    ]
    summary.standing += found
    if named and set(named) <= {number for ids in holders for number in ids}:
        return line
    summary.removed += len(named)
    return "\n".join(f'- "{standing.text}" (m:{standing.message_id})' for standing in found)


def _holders(words: str, record: Record, already: dict[str, Standing]) -> list[int]:
    """The messages that words of the user's stand in. What is carried from opening to opening was checked when it came
    in, and holds on when its message is gone."""
    key = _key(words)
    return record.said_by_user(key) or ([already[key].message_id] if key in already else [])
