"""Message ids as a summary cites them, however a model spells it: one table of spellings.

Some cite a message whatever stands around them: (m:12, 13), M：12, m:12–14, message 12, message_id=12, 消息12. Others
are also how a conversation speaks of an issue, a footnote or a motorway: #12, [12], id 12, m12. Those cite a message
only where the conversation does not have them itself, as its record tells.
"""

import re
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

# Nothing but another Latin letter or digit before makes a word of it another word: "见m:12" and "_m:12_" cite.
_APART = r"(?<![A-Za-z0-9])"
# In these patterns · stands for room that there may be.
_MARK = rf"{_APART}m·[:：]·(?:m·[:：]·)?#?"
_NAMES = (
    r"messages?|msgs?|nachricht(?:en)?|mensajes?|mensagens|mensagem|messaggio?|сообщени[а-я]+"
    "|消息|訊息|讯息|メッセージ|메시지"
)
_NUMBER_OF = r"(?:ids?|numbers?|nos?\.|nr\.|n[°º]|编号|編號|番号|번호)"
_WORD = rf"{_APART}(?:{_NAMES})(?:·[_-]?·)(?:{_NUMBER_OF})?[\"'`*]{{0,3}}·[:：=]?·[\"'`]?#?"
_KEYED = rf"{_APART}(?:{_NAMES})(?:(?:·[_-]?·){_NUMBER_OF}[\"'`*]{{0,3}}·[:：=]?|·[:：=])·[\"'`]?#?"
_DIGITS = r"\d+(?!\d)"
# "A message 10 minutes ago" cites nothing.
_UNIT = (
    r"(?![A-Za-z_]|\.\d"
    r"|·(?:times|seconds?|minutes?|hours?|days?|weeks?|months?|years?|characters?|words?|lines?|tokens?)\b"
    "|·[条條则則])"
)
_NUMBER = rf"{_DIGITS}{_UNIT}"
_TO = r"(?:·(?:[-–—~～…]|\.{2,9})·| ·(?:to|through|thru|until|bis) ·|·[至到]·)"
_AND = rf"(?:{_TO}|·[&+/]·| ·(?:and|or|und|oder|y|e|et) ·|·[和及与或]·)"
# After m:12 a bare number is an id only where nothing is counted by it: "m:12, 3 files", "m:12 and 3 files".
_ENDS = r"(?=·(?:[,，、;；.。:：)\]）】|*_`\"'”’」»]|$|\b(?:and|or|und|y)\b|[-–—和]))"
_COMMA = "·[,，、;；]·"
_AGAIN = r"(?:m·[:：]·|#)?"
_MORE = (
    rf"(?: ·(?:to|through|thru|until|bis) ·|·[至到]·){_NUMBER}"
    rf"|(?:{_AND}|{_COMMA})(?:m·[:：]·|#){_DIGITS}|[-–—~～]{_NUMBER}|(?:{_AND}|{_COMMA})\d+{_ENDS}"
)
_SURE = (
    rf"{_MARK}{_DIGITS}(?:{_MORE})*",
    rf'"(?:{_NAMES})(?:·[_-]?·){_NUMBER_OF}?"·[:=]·"?{_DIGITS}"?',
    rf"{_KEYED}{_DIGITS}(?:{_AND}{_AGAIN}{_NUMBER}|{_MORE})*",
    rf"{_WORD}{_NUMBER}(?:{_AND}{_AGAIN}{_NUMBER}|{_MORE})*",
    rf"第·{_DIGITS}·[条條则則]·(?:{_NAMES})",
)
# Each with the forms in which a conversation would have the same of its own.
_LOOSE = (
    (
        rf"(?<![A-Za-z0-9_&/#])[#＃]{_DIGITS}(?![A-Za-z_])"
        rf"(?:(?:{_AND}|{_COMMA})[#＃]{_NUMBER}|{_TO}{_NUMBER})*",
        ("#{n}", "/{n}", "＃{n}"),
    ),
    (
        rf"(?<![A-Za-z0-9_\])}}])"
        rf"(?:[\[【［]·[#＃]?{_DIGITS}(?:(?:{_AND}|{_COMMA})[#＃]?{_DIGITS})*·[\]】］])+(?!\()",
        ("[{n}]", "【{n}】", "［{n}］", "[{n},", " {n}]"),
    ),
    (
        rf"(?<![A-Za-z0-9_-])ids?[\"'`*]{{0,3}}·[:：=#]?·[\"'`]?#?{_NUMBER}(?:{_AND}{_AGAIN}{_NUMBER}|{_MORE})*",
        ("id {n}", "id: {n}", "id:{n}", "id={n}", 'id": {n}', 'id":{n}', "id #{n}", "id/{n}", "id：{n}"),
    ),
    (rf"{_APART}m[-_.#]?{_DIGITS}(?![A-Za-z_]|\.\d)", ("m{n}", "m-{n}", "m_{n}", "m.{n}", "m#{n}", "m {n}")),
)
_ANY = [*(f"(?:{sure})" for sure in _SURE), *(f"(?P<loose{n}>{loose})" for n, (loose, _own) in enumerate(_LOOSE))]
_CITATION = re.compile(
    rf"(?P<before>·)(?P<open>[(\[（【]·)?(?:{'|'.join(_ANY)})(?P<close>·[)\]）】])?".replace("·", r"\s{0,3}"),
    re.IGNORECASE,
)
_DANGLING = (
    (re.compile(r"([(\[（【])(?:\s*[,，、;；])+\s*"), r"\1"),
    (re.compile(r"(?:\s*[,，、;；])+\s*([)\]）】])"), r"\1"),
    (re.compile(r"\s*(?:\(\s*\)|\[\s*\]|（\s*）|【\s*】)"), ""),
    (re.compile(r"(?<!\S)(?:``|__|<>|\*\*|\{\})(?!\S)"), ""),
)
_ID_MAX = 2**63 - 1


@dataclass(frozen=True)
class Citation:
    """Characters `begin` to `end` of a text, the ids cited there, and `own`: the forms in which a conversation may have
    the same words itself, none of a spelling that is sure."""

    begin: int
    end: int
    numbers: list[int]
    own: tuple[str, ...]
    before: str
    opening: str
    closing: str

    def instead(self, ids: Sequence[int]) -> str:
        """The same place with other ids, or none: a bracket goes with what it holds, and stays where it holds more."""
        if ids:
            return f"{self.before}{self.opening}{', '.join(f'm:{number}' for number in ids)}{self.closing}"
        if self.opening and self.closing:
            return ""
        return f"{self.before if self.opening else ''}{self.opening}{self.closing}"


def citations(text: str) -> Iterator[Citation]:
    """What a text cites, in order."""
    for match in _CITATION.finditer(text):
        loose = next((n for n in range(len(_LOOSE)) if match[f"loose{n}"] is not None), None)
        numbers = [_number(digits) for digits in re.findall(r"\d+", match.group())]
        own = () if loose is None else _LOOSE[loose][1]
        around = (match["before"], match["open"] or "", match["close"] or "")
        yield Citation(match.start(), match.end(), numbers, own, *around)


def cited(text: str) -> list[int]:
    """The ids that a text cites, in order, repeats included. Of a range its ends."""
    return [number for citation in citations(text) for number in citation.numbers]


def storable(ids: list[int]) -> set[int]:
    """Those ids that a message can have."""
    return {number for number in ids if number <= _ID_MAX}


def without_unknown(
    line: str, known: Set[int], has: Callable[[str], bool], is_quoted: Callable[[Citation], bool]
) -> tuple[str, int]:
    """The line without the ids that are not known, and how many those were. A list keeps its known ids; nothing of the
    others stays behind. `has` tells whether the conversation has some words, folded; `is_quoted` whether a citation is
    part of words that somebody wrote, which stay as they are."""
    removed = 0
    left, done = "", 0
    for citation in citations(line):
        left += line[done : citation.begin]
        done = citation.end
        standing = [number for number in citation.numbers if number in known]
        unknown = [number for number in citation.numbers if number not in known]
        if (
            not unknown
            or (citation.own and all(_has_own(citation.own, number, has) for number in unknown))
            or is_quoted(citation)
        ):
            left += line[citation.begin : citation.end]
            continue
        removed += len(unknown)
        left += citation.instead(standing)
    left += line[done:]
    if removed:
        for pattern, instead in _DANGLING:
            left = pattern.sub(instead, left)
    return left.rstrip(), removed


def _has_own(own: tuple[str, ...], number: int, has: Callable[[str], bool]) -> bool:
    return any(has(form.format(n=number)) for form in own)


def _number(digits: str) -> int:
    """The number, or one that no message has where there are more digits than an id can have."""
    return int(digits) if len(digits) <= len(str(_ID_MAX)) else _ID_MAX + 1
