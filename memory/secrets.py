"""Secrets in words: recognised by their shapes, and by being the value of a secret of this server's own.

They are kept out of facts, of what is embedded and of exports of memory. The shapes are narrow, because ordinary words
have to pass: "basic English" is no credential, and an order number is no card. A text is looked through as it is
written and as it reads (`memory/reading_form.py`): signs that nobody sees, and full-width ones, hide nothing.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from memory.reading_form import as_read
from memory.secret_shapes import SHAPES

REDACTED = "[redacted]"
# A shorter value would stand in ordinary words too.
ENVIRONMENT_MIN_CHARS = 8
# A shorter value of the environment is one only where no word goes on beside it.
UNLIKE_WORDS_CHARS = 16

# A shell's PWD alone is the folder that it stands in.
_SECRET_NAME = re.compile(
    r"(?i)(?:(?:^|_)(?:key|keys|apikey|token|tokens|secret|secrets|credential|credentials|dsn|(?:db|pg)?pass)"
    r"|password|passwd|passphrase|(?:db|_)pwd)(?:_|$)"
)
_URL_PASSWORD = re.compile(r"://[^/\s:@]*:(?P<password>\S+)@")
# A word of letters: `postgres` as a password must not be taken out of "We use postgres".
_WORD = re.compile(r"[A-Za-z]?[a-z]{1,14}|[A-Z]{1,15}")
_REDACTED_VALUE = re.compile(
    r"(?i)(?:[\w.$#-]{1,60}[`*\"'”」)]{0,3}\s{0,3}(?:=|:|：|是|为|\bis\b)[`*_]{0,3}\s{0,3}[`*_\"'“「(]{0,3}"
    rf"|https?://[\w.:-]{{1,100}}/(?:[a-z]{{1,40}}/){{0,4}}){re.escape(REDACTED)}(?=[\s,;\"'}})&@/`*_”」-]|\Z)"
    # Nothing but its end may stand behind what stands for a key.
    rf"|-{{4,5}} ?BEGIN [A-Z0-9 ]{{0,60}}-{{4,5}}\s{{0,9}}{re.escape(REDACTED)}(?=\s{{0,9}}(?:-{{4,5}} ?END|\Z))"
)
# What may be a secret beside what was redacted: signs without a blank, a digit among them.
_MADE_BESIDE = re.compile(r"(?<!\S)(?=\S{0,300}\d)\S{6}")
AROUND_CHARS = 100
_AMOUNT = re.compile(r"[-+]?[\d_.,]+")
_NAMES_A_PLACE = re.compile(r"(?i)_(?:file|path|dir|folder)$")
# Full-width digits are digits too; the blanks and dashes of any kind between groups are one to three.
_BETWEEN = r"([ ./_\u3000\u00a0\u2007\u2009\u202f\u2010-\u2015-]{1,3})"
_CARD = re.compile(
    rf"(?<![0-9A-Za-z_.+-])(?:\d{{14,19}}|\d{{4}}{_BETWEEN}\d{{4}}\1\d{{4}}\1\d{{1,4}}(?:\1\d{{1,3}})?"
    rf"|\d{{4}}{_BETWEEN}\d{{6}}\2\d{{4,5}})(?![0-9A-Za-z_-]|\.\d)"
)

_BORN = re.compile(r"\d{6}(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{4}")


def kinds_in(text: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """What kinds of secrets stand in a text, none twice."""
    return sorted({kind for kind, _begin, _end in _found(text, environment)})


def redact(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with every secret replaced by `[redacted]`."""
    return without(text, places_in(text, environment), 0, len(text))


def places_in(text: str, environment: Mapping[str, str] | None = None) -> list[tuple[int, int]]:
    """Where secrets begin and end in a text: in order, none within another."""
    places: list[tuple[int, int]] = []
    for _kind, begin, end in sorted(_found(text, environment), key=lambda found: (found[1], -found[2])):
        if places and begin < places[-1][1]:
            places[-1] = (places[-1][0], max(places[-1][1], end))
        else:
            places.append((begin, end))
    return places


def without(text: str, places: Sequence[tuple[int, int]], begin: int, end: int) -> str:
    """A part of a text, with what of it belongs to the secrets at these places of the whole replaced: a part alone may
    hold half of one, which is no shape any more."""
    parts: list[str] = []
    for secret_begins, secret_ends in places:
        if secret_ends > begin and secret_begins < end:
            parts += [text[begin : max(begin, secret_begins)], REDACTED]
            begin = min(end, secret_ends)
    return "".join([*parts, text[begin:end]])


def redact_leaves(value: Any) -> Any:
    """A JSON value with every secret in its strings replaced, in those of its keys too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, list):
        return [redact_leaves(item) for item in value]
    if isinstance(value, dict):
        return {redact(key): redact_leaves(item) for key, item in value.items()}
    return value


def _found(text: str, environment: Mapping[str, str] | None) -> Iterator[tuple[str, int, int]]:
    values = _values(os.environ if environment is None else environment)
    yield from _matches(text, values)
    read, places = as_read(text)
    if read != text:
        values = {reads for value in values if len(reads := as_read(value)[0]) >= ENVIRONMENT_MIN_CHARS}
        for kind, begin, end in _matches(read, values):
            yield kind, places[begin], places[end - 1] + 1


def _matches(text: str, values: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    for kind, shape in SHAPES.items():
        for match in shape.finditer(text):
            if REDACTED not in match.group() or _holds_more(shape, match):
                yield kind, match.start(), match.end()
    for match in _CARD.finditer(text):
        digits = "".join(str(int(sign)) for sign in match.group() if sign.isdecimal())
        if _is_issued(digits) and len(set(digits)) > 1 and luhn_holds(digits):
            yield "card number", match.start(), match.end()
    for value in values:
        begin = text.find(value)
        while begin >= 0:
            end = begin + len(value)
            if len(value) >= UNLIKE_WORDS_CHARS or not (_goes_on(text, begin) or _goes_on(text, end)):
                yield "secret of this server", begin, end
            begin = text.find(value, end)


def _goes_on(text: str, place: int) -> bool:
    """Whether a word has this place within it: `internal` within "international"."""
    return 0 < place < len(text) and all(sign.isascii() and sign.isalnum() for sign in text[place - 1 : place + 1])


def _holds_more(shape: re.Pattern[str], match: re.Match[str]) -> bool:
    """Whether a secret is left in what has the shape of one when every `[redacted]` that stands for a whole value is
    taken away with its name: whoever writes that word beside a secret hides nothing by it."""
    rest = _REDACTED_VALUE.sub("", match.group()).replace(REDACTED, "")
    if _MADE_BESIDE.search(rest):
        return True
    before = match.string[max(0, match.start() - AROUND_CHARS) : match.start()]
    around = f"{before}{rest}{match.string[match.end() : match.end() + AROUND_CHARS]}"
    found = shape.search(around, len(before))
    return found is not None and found.start() < len(before) + len(rest)


def _is_issued(digits: str) -> bool:
    """Whether cards of so many digits begin so. One in ten of other long numbers (goods, orders, identity cards of
    China with their date of birth) has a right check digit too."""
    if len(digits) == 14:
        return digits.startswith(("30", "36", "38", "39"))
    if len(digits) == 15:
        return digits.startswith(("34", "37"))
    if len(digits) == 18 and _BORN.match(digits):
        return False
    return digits[0] in "3456" or 2221 <= int(digits[:4]) <= 2720


def luhn_holds(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _values(environment: Mapping[str, str]) -> set[str]:
    """Values of variables whose names say that they are secret, and the passwords in URLs, whatever the name. Numbers
    are amounts, such as a budget's tokens, and would be found in other numbers; the path of a file with a key is no
    key, and a single word of letters stands in what anybody says."""
    named = {
        value.strip()
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and not _NAMES_A_PLACE.search(name)
    }
    for value in environment.values():
        within = _URL_PASSWORD.search(value)
        if within:
            named |= {within["password"], unquote(within["password"])}
    return {
        value
        for value in named
        if len(value) >= ENVIRONMENT_MIN_CHARS and not _AMOUNT.fullmatch(value) and not _WORD.fullmatch(value)
    }
