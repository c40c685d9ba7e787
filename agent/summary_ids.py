"""Message ids as a summary cites them, however a model spells it: (m:12, 13), M:12, m：12, m:12–14, messages 12."""

import re
from collections.abc import Set

_MARK = r"\bm\s*[:：]\s*"
_WORD = r"(?:\b(?:messages?|msgs?|nachrichten?|mensajes?)\s+|(?:消息|訊息|讯息)\s*)#?"
# "A message 10 minutes ago" cites nothing.
_UNIT = (
    r"(?!\.\d|\s+(?:times|seconds?|minutes?|hours?|days?|weeks?|months?|years?|characters?|words?|lines?|tokens?)\b)"
)
_NUMBER = rf"\d+(?![0-9A-Za-z_]){_UNIT}"
_AND = r"\s*(?:[-–—~～&/]|\b(?:and|or|to|und|bis|y)\b|[和及与至到])\s*"
# After m:12 a bare number is an id only where nothing is counted by it: "m:12, 3 files", "m:12 and 3 files".
_ENDS = r"(?=\s*(?:[,，、;；.。:：)\]）】]|$|\b(?:and|or|und|y)\b|[-–—和]))"
_MORE = rf"(?:{_AND}{_MARK}|\s*[,，、;；]\s*{_MARK}|[-–—~～]){_NUMBER}|(?:{_AND}|\s*[,，、;；]\s*)\d+{_ENDS}"
_CITATION = re.compile(
    rf"(?P<before>\s*)(?P<open>[(\[（【]\s*)?"
    rf"(?:{_WORD}(?:{_MARK})?{_NUMBER}(?:{_AND}(?:{_MARK})?{_NUMBER}|{_MORE})*|{_MARK}{_NUMBER}(?:{_MORE})*)"
    r"(?P<close>\s*[)\]）】])?",
    re.IGNORECASE,
)
_DANGLING = (
    (re.compile(r"([(\[（【])(?:\s*[,，、;；])+\s*"), r"\1"),
    (re.compile(r"(?:\s*[,，、;；])+\s*([)\]）】])"), r"\1"),
    (re.compile(r"\s*(?:\(\s*\)|\[\s*\]|（\s*）|【\s*】)"), ""),
)
_ID_MAX = 2**63 - 1


def cited(text: str) -> list[int]:
    """The ids that a text cites, in order, repeats included. Of a range its ends."""
    return [number for citation in _CITATION.finditer(text) for number in _numbers(citation.group())]


def storable(ids: list[int]) -> set[int]:
    """Those ids that a message can have."""
    return {number for number in ids if number <= _ID_MAX}


def without_unknown(line: str, known: Set[int]) -> tuple[str, int]:
    """The line without the ids that are not known, and how many those were. A list keeps its known ids; nothing of the
    others stays behind."""
    removed = 0

    def kept(citation: re.Match[str]) -> str:
        nonlocal removed
        numbers = _numbers(citation.group())
        standing = [number for number in numbers if number in known]
        if len(standing) == len(numbers):
            return citation.group()
        removed += len(numbers) - len(standing)
        opening, closing = citation["open"] or "", citation["close"] or ""
        if standing:
            ids = ", ".join(f"m:{number}" for number in standing)
            return f"{citation['before']}{opening}{ids}{closing}"
        # A bracket goes with what it holds, and stays where it holds more.
        return "" if opening and closing else f"{citation['before'] if opening else ''}{opening}{closing}"

    left = _CITATION.sub(kept, line)
    if removed:
        for pattern, instead in _DANGLING:
            left = pattern.sub(instead, left)
    return left.rstrip(), removed


def _numbers(citation: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", citation)]
