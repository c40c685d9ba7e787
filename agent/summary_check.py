"""What of a model's summary is accepted: a summary must not invent what somebody said, or where it stands.

Message ids, and words in quotation marks of any kind, are looked up in the record. What cannot be found is removed.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Protocol

from agent.summary import (
    HEADING,
    NOTHING,
    QUESTIONS,
    REQUEST,
    STANDING,
    TITLES,
    WITHDRAWN,
    Standing,
    Summary,
    number_of,
)
from agent.summary_ids import Citation, citations, cited, storable, without_unknown
from agent.summary_quotations import (
    Kind,
    Quotation,
    are_pieces,
    closed,
    is_opened,
    outermost,
    quotations,
    without_quotations,
)
from threads.transcript import fold

REMOVED = "[...]"

_BLOCK = re.compile(r"\s*(?:[-*]\s+)?>[>\s]*")
_NEW_ITEM = re.compile(r"\s*(?:[-*•>]|\d+[.)、])\s|\s*$")
QUOTED_LINES_MAX = 20
_FENCE = re.compile(r"\s*(?:```|~~~)[^`~]*$")
# Within a line, so that no id hides behind more room than its spellings know.
_GAP = re.compile(r"(?<=\S)\s{3,}")
# Words for the user in the languages that a summary may be written in.
_USER = re.compile(
    r"\b(?:user|human|person|customer|client|requester|nutzer|benutzer|utilisateur|utilisatrice|usuario|usuaria|utente"
    r"|usuário|пользовател\w+)(?:s|s?['’]s?)?\b|用户|用戶|使用者|客户|客戶|ユーザー|利用者|사용자",
    re.IGNORECASE,
)
# What a line says of somebody who wants something, without saying who: of the user, unless it names another.
_ASKS = re.compile(
    r"\b(?:asked|asks|requested|requests|instructed|instructs|demanded|demands|insisted|wanted|wants|told|ordered"
    r"|approved|agreed|allowed|permitted)\b|要求|吩咐|指示|命令|希望|想要|同意|允许|批准",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:assistant|agent|model|tool|server|script|program|command|test|build|log|output|error|file|page|report|task"
    r"|i|we)s?\b|助手|模型|工具|服务器|脚本|命令行|测试|日志|报错|文件|报告",
    re.IGNORECASE,
)
# Other quotations are checked only where a line speaks of the user.
_CHECKED = (Kind.SPEECH, Kind.TITLE)
# A citation right behind a quotation says which message the words stand in.
_BETWEEN = re.compile(r"[\s.,;:，。；：!?！？*_]*")
_AROUND = " \t\\.,。，、!！?？;；:：…"
_OTHER_QUOTES = (str.maketrans("’‘“”", "''\"\""), str.maketrans("'", "’"))


class Record(Protocol):
    """What a summary may rest on: the rows of a conversation, and the instructions that it holds already. Words are
    folded."""

    standing: Sequence[Standing]

    def known(self, ids: set[int]) -> set[int]:
        """Those ids that are messages of the conversation or of what it was copied from."""

    def said_by_user(self, words: str) -> list[int]:
        """Ids of the user's messages that hold the words, over lines or not, ascending."""

    def said(self, words: str) -> list[int]:
        """Ids of messages that hold the words, or quote them."""

    def said_in(self, words: str, ids: set[int]) -> bool:
        """Whether one of these messages holds the words, or quotes them."""


def check(text: str, record: Record) -> Summary:
    """Remove what the record does not have. The text has all ten sections.

    In section 2 each quotation must be the user's. Elsewhere a line that names the user goes when it quotes what the
    user did not write. In section 1, and where somebody is said to want something, a quotation that is not the user's
    is replaced by REMOVED; in all other lines one that stands in no message. An id behind a quotation is that of a
    message it stands in: another one is put right.
    """
    start = HEADING.search(text)
    assert start is not None  # all ten sections were found before
    return _Checked(record, text[start.start() :]).summary


class _Checked:
    """A summary while it is checked, line by line."""

    def __init__(self, record: Record, text: str) -> None:
        self._record = record
        self._known = record.known(storable(cited(_GAP.sub("  ", text))))
        self._has = cache(lambda words: bool(record.said(words)))
        self._section = 0
        self._introduced = False  # a line that names the user, and ends in a colon, stands before
        self._fenced = False  # by one that was introduced so
        self.summary = Summary(text="")
        lines = [self._checked(line) for line in _with_whole_quotations(text.splitlines())]
        self.summary.text = "\n".join(line for line in lines if line is not None).strip()

    def _checked(self, line: str) -> str | None:
        heading = HEADING.match(line)
        if heading and number_of(heading) == self._section + 1:
            self._section += 1
            self._introduced = self._fenced = False
            return f"{self._section}. {TITLES[self._section - 1]}"
        line = _GAP.sub("  ", line)
        line, unknown = without_unknown(line, self._known, self._has, partial(self._is_quoted, line))
        self.summary.removed += unknown
        if self._section == STANDING:
            return self._standing_line(line)
        if _FENCE.match(line):
            self._fenced = self._introduced and not self._fenced
            return line
        if self._fenced or _BLOCK.match(line):
            return self._quoted_line(line)
        kept = self._line(line)
        if line.strip():
            self._introduced = _names_user(line) and line.rstrip(" *_").endswith((":", "："))
        return kept

    def _line(self, line: str) -> str | None:
        of_user = self._introduced or _names_user(line)
        outside = without_quotations(line)
        asked = self._section == REQUEST or (_ASKS.search(outside) and not _OTHERS.search(outside))
        beside = [one for one in citations(line) if self._known.issuperset(one.numbers)]
        left, done = "", 0
        for quotation in quotations(line):
            key = _key(quotation.words)
            if not key or not (quotation.kind in _CHECKED or of_user or (asked and quotation.kind is Kind.PLAIN)):
                continue
            only_users = bool(of_user or asked) and not self._may_be_anybodys(quotation, key)
            ids = self._users(key) if only_users else self._holders(key)
            if not ids and of_user:
                self.summary.removed += 1
                return None
            left += line[done : quotation.begin] + (line[quotation.begin : quotation.end] if ids else REMOVED)
            done = quotation.end
            self.summary.removed += not ids
            behind = next((one for one in beside if _is_behind(line, quotation, one)), None)
            if ids and behind is not None and not self._stands_in(key, behind, ids, only_users=only_users):
                self.summary.removed += len(behind.numbers)
                left += line[done : behind.begin] + behind.instead([ids[-1]])
                done = behind.end
        return left + line[done:]

    def _quoted_line(self, line: str) -> str | None:
        """A line that is quoted whole, with or without an id at its end."""
        block = _BLOCK.match(line)
        words = line[block.end() :] if block else line
        last = next((one for one in citations(words) if not words[one.end :].strip(_AROUND)), None)
        key = _key(words[: last.begin] if last is not None else words)
        if not key or (self._users(key) if self._introduced or self._fenced else self._holders(key)):
            return line
        self.summary.removed += 1
        return None

    def _standing_line(self, line: str) -> str | None:
        if line.strip(" -*_") in ("", NOTHING):
            return line
        found = self._instructions(line)
        spoken = [one for one in found if one.kind is Kind.SPEECH and _key(one.words)]
        if not spoken:
            return None
        if are_pieces(line, found) or not all(map(self._may_stand, found)):
            self.summary.removed += 1
            return None
        quoted = [one.words for one in spoken]
        if WITHDRAWN.lower() in line.lower():
            # The id is that of the message that withdraws it, so it need not hold these words.
            self.summary.withdrawn += quoted
            return line
        outside = [one for one in citations(line) if not any(each.begin <= one.begin < each.end for each in found)]
        named = [number for one in outside for number in one.numbers]
        holders = [self._instruction_ids(_key(words)) for words in quoted]
        standing = [
            Standing(words, next((number for number in named if number in ids), ids[-1]))
            for words, ids in zip(quoted, holders, strict=True)
        ]
        self.summary.standing += standing
        if named and set(named) <= {number for ids in holders for number in ids}:
            return line
        self.summary.removed += len(named)
        return "\n".join(f'- "{one.text}" (m:{one.message_id})' for one in standing)

    def _instructions(self, line: str) -> list[Quotation]:
        """What a line of section 2 quotes. What the user wrote from the first mark before an id to the last one is one
        quotation, whatever marks stand within."""
        found, begin = quotations(line), 0
        for end in [*(one.begin for one in citations(line)), len(line)]:
            whole = outermost(line, begin, end)
            if whole is None:
                continue
            spellings = dict.fromkeys([whole.words, whole.words.replace('\\"', '"')])
            words = next((words for words in spellings if self._instruction_ids(_key(words))), None)
            if words is not None:
                whole = replace(whole, words=words)
                found = [one for one in found if one.begin < whole.begin or one.begin >= whole.end]
                found.append(whole)
                begin = whole.end
        return sorted(found, key=lambda one: one.begin)

    def _may_stand(self, quotation: Quotation) -> bool:
        """Whether a line of section 2 may quote this: the user's words, or the name of something."""
        key = _key(quotation.words)
        if quotation.kind is Kind.CODE and len(key.split()) == 1:
            return bool(self._holders(key))
        return not key or bool(self._instruction_ids(key))

    def _instruction_ids(self, key: str) -> list[int]:
        """The messages in which the user gave an instruction. What is carried from opening to opening was checked when
        it came in, and holds on when its message is gone."""
        if not key:
            return []
        carried = (one.message_id for one in self._record.standing if _key(one.text) == key)
        return self._users(key) or list(islice(carried, 1))

    def _is_quoted(self, line: str, citation: Citation) -> bool:
        """Whether a citation stands within words of the user's."""
        found = self._instructions(line) if self._section == STANDING else closed(line)
        around = (one for one in found if one.begin < citation.begin and citation.end < one.end)
        return any(one.kind is Kind.SPEECH and self._users(_key(one.words)) for one in around)

    def _may_be_anybodys(self, quotation: Quotation, key: str) -> bool:
        """Titles, a name of something in one word between backticks, and what the user is asked."""
        if quotation.kind is Kind.CODE:
            return len(key.split()) == 1
        return quotation.kind is Kind.TITLE or (
            self._section == QUESTIONS and quotation.words.rstrip(" *_").endswith(("?", "？"))
        )

    def _stands_in(self, key: str, citation: Citation, ids: Sequence[int], *, only_users: bool) -> bool:
        """Whether words stand in a message that is cited; `ids` are the user's messages with them, where only those
        count."""
        cited_ids = set(citation.numbers)
        if only_users or cited_ids.intersection(ids):
            return not cited_ids.isdisjoint(ids)
        return any(self._record.said_in(spelling, cited_ids) for spelling in _spellings(key))

    def _users(self, key: str) -> list[int]:
        """The user's messages with the words, whichever apostrophes stand in either."""
        return next(filter(None, map(self._record.said_by_user, _spellings(key))), [])

    def _holders(self, key: str) -> list[int]:
        return next(filter(None, map(self._record.said, _spellings(key))), []) or self._users(key)


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


def _spellings(key: str) -> list[str]:
    return list(dict.fromkeys([key, *(key.translate(other) for other in _OTHER_QUOTES)]))


def _with_whole_quotations(lines: Sequence[str]) -> list[str]:
    """The lines, with a quotation that goes on in the next ones in one line."""
    joined: list[str] = []
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        for further in range(1, QUOTED_LINES_MAX):
            if _FENCE.match(line) or not is_opened(line):
                break
            after = lines[place : place + further]
            if len(after) < further or any(HEADING.match(next) or _NEW_ITEM.match(next) for next in after):
                break
            whole = " ".join([line, *(part.strip() for part in after)])
            if len(closed(whole)) > sum(len(closed(part)) for part in [line, *after]):
                line, place = whole, place + further
                break
        joined.append(line)
    return joined


def _names_user(line: str) -> bool:
    return _USER.search(without_quotations(line)) is not None


def _is_behind(line: str, quotation: Quotation, citation: Citation) -> bool:
    return citation.begin >= quotation.end and _BETWEEN.fullmatch(line, quotation.end, citation.begin) is not None
