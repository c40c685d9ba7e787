"""The elements of a JSON list in a stream, one at a time, however long the list is.

Only brackets and quotes are looked at, so an element that is no JSON costs that element alone, and one that is too
large is passed over without being kept.
"""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

_STRUCTURE = re.compile(rb'["\[\]{},]')
_INNER_STRUCTURE = re.compile(rb'["\[\]{}]')
# A line's end inside a string is no JSON: a quote is missing, and the next line is more than likely sound.
_IN_STRING = re.compile(rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+', re.DOTALL)
# How conversations begin in the exports of ChatGPT and Claude.
_BEGINNING = re.compile(rb'\}\s*,\s*(?=\{\s*(?:"title"|"uuid"\s*:\s*"[^"]{1,64}"\s*,\s*"name")\s*:)')
_CLOSES = {b"}": b"{"[0], b"]": b"["[0]}


class ElementState(enum.Enum):
    """How an element was found."""

    WHOLE = "whole"
    TOO_LARGE = "too large"
    CUT_SHORT = "the stream ends inside it"
    LIST_CUT_SHORT = "the stream ends between two elements"


@dataclass(frozen=True)
class Element:
    """The bytes of one element, none of one that is too large."""

    raw: bytes
    state: ElementState = ElementState.WHOLE


class JsonScan:
    """Reads a list (or objects that stand alone, one after the other) from `read`, which returns the next bytes and
    none at the end. At most `max_bytes` and one piece of what `read` returns are kept."""

    def __init__(self, read: Callable[[], bytes], max_bytes: int) -> None:
        self.read, self.max_bytes = read, max_bytes
        self.buffer = bytearray()
        self.at = 0  # what stands before it was looked at
        # Brackets that stand open, and how many of each kind: whatever is nested how deeply, a sign costs the same.
        self.open = bytearray()
        self.open_of = {b"{"[0]: 0, b"["[0]: 0}
        self.in_string = False
        self.in_list = False
        self.too_large = False

    def next(self) -> Element | None:
        """The next element; None at the end."""
        while (sign := self._next_sign()) is not None:
            found = self._take(sign)
            if found is not None:
                return found
        return self._last()

    def recover(self, element: Element) -> bool:
        """Go on inside an element that was no JSON, where the next conversation seems to begin. False if none does."""
        found = _BEGINNING.search(element.raw)
        if found is None:
            return False
        ended_by = b"," if self.open else b"]"
        if element.state is ElementState.CUT_SHORT:
            ended_by = b""
        self.buffer[:0] = element.raw[found.end() :] + ended_by
        self._start(in_list=True)
        return True

    def _start(self, *, in_list: bool) -> None:
        self.at, self.in_string, self.too_large, self.in_list = 0, False, False, in_list
        self.open[:] = b"[" if in_list else b""
        self.open_of = {b"{"[0]: 0, b"["[0]: int(in_list)}

    def _take(self, sign: bytes) -> Element | None:
        if sign == b'"':
            self.in_string = True
        elif sign == b"," and self.in_list and len(self.open) == 1:
            return self._end(1)
        elif sign in (b"[", b"{"):
            if not self.open and sign == b"[":
                self.in_list = True
                self._drop()
            self.open += sign
            self.open_of[sign[0]] += 1
        elif sign in _CLOSES:
            return self._close(sign)
        return None

    def _close(self, sign: bytes) -> Element | None:
        opener = _CLOSES[sign]
        if self.in_list and len(self.open) == 1:
            if sign == b"]":
                self.open.clear()
                self.open_of[opener] = 0
                self.in_list = False
                return self._end(1)
            return None
        # What is left open inside ends with what it stands in; what closes nothing of this element is passed over.
        of_the_list = 1 if self.in_list and sign == b"]" else 0
        if self.open_of[opener] > of_the_list:
            closed = None
            while closed != opener:
                closed = self.open.pop()
                self.open_of[closed] -= 1
            if not self.open:
                return self._end(0)
        return None

    def _end(self, sign_bytes: int) -> Element | None:
        raw = bytes(self.buffer[: self.at - sign_bytes]).strip()
        too_large, self.too_large = self.too_large, False
        self._drop()
        if too_large:
            return Element(b"", ElementState.TOO_LARGE)
        return Element(raw) if raw else None

    def _last(self) -> Element | None:
        rest = bytes(self.buffer).strip()
        inside = bool(self.open) or self.in_string
        in_list, too_large = self.in_list, self.too_large
        self.buffer.clear()
        self._start(in_list=False)
        if too_large:
            return Element(b"", ElementState.TOO_LARGE)
        if rest:
            return Element(rest, ElementState.CUT_SHORT if inside else ElementState.WHOLE)
        return Element(b"", ElementState.LIST_CUT_SHORT) if in_list else None

    def _drop(self) -> None:
        del self.buffer[: self.at]
        self.at = 0

    def _next_sign(self) -> bytes | None:
        """The next bracket, comma or opening quote outside strings; None at the end."""
        while True:
            if self.in_string:
                if self._leave_string():
                    continue
            else:
                signs = _STRUCTURE if len(self.open) <= 1 else _INNER_STRUCTURE
                found = signs.search(self.buffer, self.at)
                if found is not None:
                    self.at = found.end()
                    return found.group()
                self.at = len(self.buffer)
            if not self._more():
                return None

    def _leave_string(self) -> bool:
        found = _IN_STRING.match(self.buffer, self.at)
        self.at = found.end() if found else self.at
        if self.buffer[self.at : self.at + 1] in (b'"', b"\n"):
            self.at += 1
            self.in_string = False
        return not self.in_string

    def _more(self) -> bool:
        chunk = self.read()
        if not chunk:
            return False
        if self.too_large or len(self.buffer) > self.max_bytes:
            # A backslash at the end stays: it belongs to the sign that comes.
            self.too_large = True
            self._drop()
        self.buffer += chunk
        return True
