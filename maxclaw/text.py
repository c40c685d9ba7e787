"""Text that PostgreSQL, JSON and a model can all hold, and cuts that never split what reads as one sign."""

import re
from collections.abc import Callable
from typing import Any

import regex

# What PostgreSQL refuses in text (NUL) and what UTF-8 cannot encode (lone surrogates).
_INVISIBLE = re.compile("[\x00\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
NUL_SIGN = "␀"
# Unicode's ignorable signs, and the one Braille pattern without a dot.
_BLANK = regex.compile(r"[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*+")

_CLUSTER = regex.compile(r"\X")
# Between these two neighbours Unicode always breaks (UAX 29), whatever stands before them: no side is a mark,
# a joiner, a prepended sign, a regional indicator or a conjoining jamo. Elsewhere a cut counts clusters.
_BEFORE = r"\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}\p{GCB=Control}\p{GCB=LF}"
_AFTER = r"\p{GCB=Other}\p{GCB=LV}\p{GCB=LVT}\p{GCB=L}\p{GCB=Control}\p{GCB=CR}"
_SURE_BOUNDARY = regex.compile(f"(?r)(?<=[{_BEFORE}])(?=[{_AFTER}])")
_WINDOW_CHARS = 128
# Flags are pairs counted from the start of their run; counting each pair from there again would take for ever.
_FLAG_HALVES = regex.compile(r"(?r)[\U0001F1E6-\U0001F1FF]+")


def visible(text: str) -> str:
    """`text` with NUL as "␀" and each lone surrogate as its escape spelled out: six characters, `\\ud800`.

    A high surrogate directly followed by a low one is one character that was torn apart; it is joined. The
    result can be encoded as UTF-8 and stored in PostgreSQL. Text that needs no change comes back itself.
    """
    if _INVISIBLE.search(text) is None:
        return text
    joined = _SURROGATE_PAIR.sub(lambda pair: _join(pair.group()), text)
    return _INVISIBLE.sub(lambda sign: _spell_out(sign.group()), joined)


def is_blank(text: str) -> bool:
    """Whether nobody would see anything of it: white space, control characters, and signs that Unicode has drawn as
    nothing (joiners, marks of direction, fillers). NUL and lone surrogates are to be made visible first."""
    return _BLANK.fullmatch(text) is not None


def _join(pair: str) -> str:
    return pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _spell_out(sign: str) -> str:
    return NUL_SIGN if sign == "\x00" else f"\\u{ord(sign):04x}"


def visible_json(value: Any) -> Any:
    """`value`, as `json.loads` returns it, with every string and every key made visible.

    Two keys that become equal are kept apart by underscores after the second.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list):
        return [visible_json(item) for item in value]
    if isinstance(value, dict):
        changed: dict[str, Any] = {}
        for key, item in value.items():
            name = visible(key)
            while name in changed:
                name += "_"
            changed[name] = visible_json(item)
        return changed
    return value


def boundary_before(text: str, position: int) -> int:
    """The last boundary between grapheme clusters at or before `position` (clamped to the text).

    Reads only the neighbourhood of the cut, so that it costs the same in a text of a million characters; a
    run of marks without any sure boundary is read back to its start.
    """
    if position >= len(text):
        return len(text)
    boundary = _sure_boundary_before(text, max(position, 0))
    for cluster in _CLUSTER.finditer(text, boundary):
        if cluster.end() > position:
            break
        boundary = cluster.end()
    return boundary


def boundary_after(text: str, position: int) -> int:
    """The first boundary between grapheme clusters at or after `position` (clamped to the text)."""
    if position <= 0:
        return 0
    if position >= len(text):
        return len(text)
    for cluster in _CLUSTER.finditer(text, _sure_boundary_before(text, position)):
        if cluster.start() >= position:
            return cluster.start()
        if cluster.end() >= position:
            return cluster.end()
    return len(text)


def _sure_boundary_before(text: str, position: int) -> int:
    run = _FLAG_HALVES.match(text, 0, position)
    if run and position - run.start() >= 4:
        return run.start() + (position - run.start() - 1) // 2 * 2
    window = _WINDOW_CHARS
    while True:
        start = max(position - window, 0)
        # One character of context on each side: the look-around of both ends reads it.
        found = _SURE_BOUNDARY.search(text, max(start - 1, 0), min(position + 1, len(text)))
        if found and found.start() <= position:
            return found.start()
        if start == 0:
            return 0
        window *= 4


def head(text: str, max_chars: int) -> str:
    """The longest start of `text` of at most `max_chars` characters that ends between grapheme clusters."""
    return text[: boundary_before(text, max_chars)]


def tail(text: str, max_chars: int) -> str:
    """The longest end of `text` of at most `max_chars` characters that starts between grapheme clusters."""
    return text[boundary_after(text, len(text) - max(max_chars, 0)) :]


def head_and_tail(text: str, max_chars: int, gap: str | Callable[[int], str]) -> str:
    """`text` itself when it fits, else its start and its end with `gap` between, at most `max_chars` in all.

    `gap` is the text between, or a function of the number of characters left out. When the gap does not fit
    beside anything, the start alone is returned.
    """
    if len(text) <= max_chars:
        return text
    describe = (lambda _left_out: gap) if isinstance(gap, str) else gap
    room = max_chars - len(describe(len(text)))
    while room > 0:
        start, end = head(text, room - room // 2), tail(text, room // 2)
        result = start + describe(len(text) - len(start) - len(end)) + end
        if len(result) <= max_chars:
            return result
        # A gap that grows as less is left out takes its excess from both sides.
        room -= len(result) - max_chars
    return head(text, max_chars)
