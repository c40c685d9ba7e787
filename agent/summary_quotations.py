"""Words in quotation marks, as a summary may write them: one table of marks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise

# A letter of a script with spaces: beside one, a single quotation mark is an apostrophe.
_LETTER = "A-Za-z0-9\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff"
_NOT_AFTER_LETTER, _NOT_BEFORE_LETTER = f"(?<![{_LETTER}])", f"(?![{_LETTER}])"
_ENTITY = (
    r"&(?:quot|apos|[lrb]dquo|[lr]squo|sbquo|[lr]s?aquo"
    r"|#0*(?:34|39|171|187|821[6-9]|822[0-3]|8249|8250)|#x0*(?:22|27|ab|bb|201[89a-f]|2039|203a));"
)


class Kind(Enum):
    """What marks stand around: what somebody said; the title of something; either that or an apostrophe's text; or
    code."""

    SPEECH = "speech"
    TITLE = "title"
    PLAIN = "plain"
    CODE = "code"


@dataclass(frozen=True)
class Quotation:
    """Characters `begin` to `end` of a line, marks included, and the words between the marks."""

    begin: int
    end: int
    words: str
    kind: Kind


# Opening mark, what may stand inside, closing mark. Of marks that begin at one place the first counts.
_SPEECH = (
    (r'(?<![0-9])\\?"', r'[^"\n]{2,}?', r'\\?"'),  # the mark after a digit is for inches
    ("“", r"[^”\n]+", "”"),
    ("“", r'[^“"\n]+', '[“"]'),
    ("”", r'[^“”"\n]+', '[”"]'),
    ("[„‟]", r'[^“”"\n]+', '[“”"]'),
    (f"{_NOT_AFTER_LETTER}[‘‛]", r"(?:[^‘’\n]|(?<=\w)’(?=\w))+", f"’{_NOT_BEFORE_LETTER}"),
    ("‚", r"[^‚‘’\n]+", "[‘’]"),
    ("「", r"[^」\n]+", "」"),
    ("『", r"[^』\n]+", "』"),
    ("｢", r"[^｣\n]+", "｣"),
    ("[﹁﹃]", r"[^﹂﹄\n]+", "[﹂﹄]"),
    ("«", r"[^«»\n]+", "»"),
    ("»", r"[^«»\n]+", "«"),
    ("‹", r"[^‹›\n]+", "›"),
    ("›", r"[^‹›\n]+", "‹"),
    ("❮", r"[^❮❯\n]+", "❯"),
    ("⟪", r"[^⟪⟫\n]+", "⟫"),
    ("[〝〞]", r"[^〝〞〟\n]+", "[〞〟〝]"),
    ("[❝❞]", r"[^❝❞\n]+", "[❞❝]"),
    ("[❛❜]", r"[^❛❜\n]+", "[❜❛]"),
    ("＂", r"[^＂\n]+", "＂"),
    ("＇", r"[^＇\n]+", "＇"),
    ("″", r"[^″\n]+", "″"),
    (r"(?<!`)``", r"(?:[^`'\n]|'(?!'))+", "''"),
    (_ENTITY, r"[^\n]+?", _ENTITY),
    (r"<(?:q|blockquote|cite)\b[^>\n]*>", r"[^\n]+?", r"</(?:q|blockquote|cite)\s*>"),
)
_TITLE = (
    ("《", r"[^》\n]+", "》"),
    ("〈", r"[^〉\n]+", "〉"),
)
# These quote where somebody speaks; elsewhere they stand around code, or between letters.
_PLAIN = (
    (rf"{_NOT_AFTER_LETTER}'(?!\s|\d0s\b)", r"(?:[^'\n]|(?<=\w)'(?=\w)){2,}?", rf"(?<!\s)'{_NOT_BEFORE_LETTER}"),
    (f"{_NOT_AFTER_LETTER}´", r"[^´\n]{2,}", f"´{_NOT_BEFORE_LETTER}"),
    (f"{_NOT_AFTER_LETTER}`(?=[^`\n]+[´'])", r"(?:[^`´'\n]|(?<=\w)'(?=\w)){2,}", f"[´']{_NOT_BEFORE_LETTER}"),
)
_CODE = ((r"(?P<ticks>`+)", r"[^`\n]{2,}", "(?P=ticks)"),)
# What a line opens and never closes goes on to its end.
_UNCLOSED = re.compile(
    rf'(?:(?<![{_LETTER}"\\])\\?"(?=\S)|{_NOT_AFTER_LETTER}‘(?!\d)|[“„‟「『｢﹁﹃«❮⟪〝❝＂])(?P<words>[^\n]{{2,}})$'
)
# Where a quotation may begin that its own line does not end.
_OPENED = re.compile(rf'(?<![0-9\\])"|[“„”‟「『｢﹁﹃«»‹❮⟪〝❝＂‚`]|{_NOT_AFTER_LETTER}[‘\']|<q\b|{_ENTITY}')

_SPEECH_MARK = re.compile(r'\\?["＂]|[“”„‟「」『』｢｣«»‹›]')
# Marks that open as they close, so that one within others is not told from them.
_EITHER = '"＂'
_SEPARATED = re.compile(r"\s*[,，、;；/&+]\s*(?:(?:and|or)\s+)?|\s+(?:and|or|und|oder|y|e|et)\s+", re.IGNORECASE)
_CITES = re.compile(r"\bm\s*[:：]\s*\d", re.IGNORECASE)


def _pattern(*rows: tuple[Kind, tuple[tuple[str, str, str], ...]]) -> tuple[re.Pattern[str], list[Kind]]:
    kinds = [kind for kind, marks in rows for _mark in marks]
    marks = [mark for _kind, marks in rows for mark in marks]
    alternatives = (f"{opens}(?P<w{n}>{inside}){closes}" for n, (opens, inside, closes) in enumerate(marks))
    return re.compile("|".join(alternatives)), kinds


# The second ones are looked for between the first.
_PATTERNS = (
    _pattern((Kind.SPEECH, _SPEECH), (Kind.TITLE, _TITLE)),
    _pattern((Kind.PLAIN, _PLAIN), (Kind.CODE, _CODE)),
)


def quotations(line: str) -> list[Quotation]:
    """What a line quotes, in order; the last of them may be open to the line's end."""
    found = list(closed(line))
    opened = _UNCLOSED.search(_blanked(line, found))
    if opened:
        begin = opened.start()
        found = [one for one in found if one.end <= begin]
        words = line[opened.start("words") :]
        found.append(Quotation(begin, len(line), words, Kind.SPEECH))
    return found


@lru_cache(maxsize=64)
def closed(line: str) -> tuple[Quotation, ...]:
    """The quotations of a line that have both of their marks."""
    found: list[Quotation] = []
    for pattern, kinds in _PATTERNS:
        # Of marks within other marks the outer ones count.
        for match in pattern.finditer(_blanked(line, found)):
            number = next(n for n in range(len(kinds)) if match[f"w{n}"] is not None)
            found.append(Quotation(match.start(), match.end(), match[f"w{number}"], kinds[number]))
    return tuple(sorted(found, key=lambda one: one.begin))


def outermost(line: str, begin: int, end: int) -> Quotation | None:
    """What stands from the first mark of speech in a part of a line to the last one there, other marks included."""
    marks = list(_SPEECH_MARK.finditer(line, begin, end))
    if len(marks) < 2:
        return None
    words = line[marks[0].end() : marks[-1].start()]
    return Quotation(marks[0].start(), marks[-1].end(), words, Kind.SPEECH)


def are_pieces(line: str, found: Sequence[Quotation]) -> bool:
    """Whether quotations of a line look like pieces of one that has such marks within: a mark is left over, or what
    stands between two of them, or beside a mark, is not what stands between two quotations."""
    left = _SPEECH_MARK.search(_blanked(line, found))
    if left and not (left.group() == '"' and line[left.start() - 1 : left.start()].isdigit()):
        return True
    alike = [one for one in found if one.kind is Kind.SPEECH and line[one.end - 1] in _EITHER]
    between = (line[one.end : next.begin] for one, next in pairwise(alike))
    return any(one.words != one.words.strip() for one in alike) or any(
        not _SEPARATED.fullmatch(words) and not _CITES.search(words) for words in between
    )


def is_opened(line: str) -> bool:
    """Whether a quotation may begin in the line that goes on in the next one."""
    return _OPENED.search(_blanked(line, closed(line))) is not None


def without_quotations(line: str) -> str:
    """The line with blanks for what it quotes."""
    return _blanked(line, quotations(line))


def _blanked(line: str, found: Iterable[Quotation]) -> str:
    for one in found:
        line = line[: one.begin] + " " * (one.end - one.begin) + line[one.end :]
    return line
