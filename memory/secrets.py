"""Secrets in words: recognised by their shapes, and by being the value of a secret of this server's own.

They are kept out of facts, of what is embedded and of exports of memory. The shapes are narrow, because ordinary words
have to pass: "basic English" is no credential, and an order number is no card.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

REDACTED = "[redacted]"
# A shorter value would stand in ordinary words too.
ENVIRONMENT_MIN_CHARS = 8

_SECRET_NAME = re.compile(
    r"(?i)(^|_)(key|keys|apikey|token|tokens|secret|secrets|password|passwd|pwd|credential|credentials|dsn)(_|$)"
)
# Letters and digits mixed, as made by a machine: at least one digit, and no blank.
_MADE = r"(?=[\w.~+/=-]*\d)[\w.~+/=-]"
_SHAPES: dict[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.DOTALL,
    ),
    "webhook URL": re.compile(
        r"(?i)https?://(?:hooks\.slack\.com/(?:services|workflows|triggers)/"
        r"|(?:\w+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/"
        r"|[\w.-]*webhook\.office\.com/|outlook\.office(?:365)?\.com/webhook/|hooks\.zapier\.com/hooks/"
        r"|maker\.ifttt\.com/trigger/|api\.telegram\.org/bot\d|qyapi\.weixin\.qq\.com/cgi-bin/webhook/"
        r"|oapi\.dingtalk\.com/robot/send|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/"
        r"|chat\.googleapis\.com/v1/spaces/"
        r"|[^\s/]+/(?:[^\s?#]*/)?(?:web)?hooks?/(?=[^\s?#]*\d)[\w-]{16,})[^\s\"'<>)\]，。；]*"
    ),
    # To the last @ before white space, so that a password with / or @ goes whole. A port follows a host, not a name.
    "password in a URL": re.compile(
        r"(?<=://)[^/\s:@\"'<>]*:(?!\d{1,5}[/?#])[^\s\"'<>]+(?=@[\w\[.-])|(?<=://)[0-9a-fA-F]{32}(?::[0-9a-fA-F]{32})?(?=@)"
        # A data source name of drivers that write no scheme: name:password@tcp(host:port)/database.
        r"|(?<![\w/:.-])[\w.-]+:[^\s\"'<>]+(?=@(?:tcp|udp|unix)\d?\()"
    ),
    "password of a command": re.compile(
        r"(?<![\w-])(?:-u|--user|--proxy-user)[ =]+[\"']?[\w.@-]+:(?=[^\s\"']*[\d!#$%^&*])[^\s\"':/]{6,}"
    ),
    "password": re.compile(
        # A name may have more before it, as in DB_PASSWORD and PGPASSWORD, and a key its quotation marks.
        r"(?i)(?:(?<![\w-])\w*(?:password|passwd|passphrase|pwd)[\"']?\s*=\s*(?!(?:true|false|none|null)\b)"
        r"|(?<=[\"'])\w*(?:password|passwd|passphrase|pwd)[\"']\s*:\s*"
        r"(?=([\"'])(?!(?:none|null|required|optional|string|text|unknown)[\"'])[^\"'\n]{4,}\1)"
        r"|(?<![\w-])\w*(?:password|passwd|passphrase|pwd)\s*(?::|\bis\b)\s*(?=[^\s,;]*[\d!@#$%^&*_])"
        # A word that stands alone behind it is one; words that go on are a sentence.
        r"|(?<![\w-])(?:password|passwd|passphrase|pwd)\s*[:：]\s*"
        r"(?!(?:none|null|required|optional|string|text|unknown|forgotten|changed|reset|stored|hidden|missing)\b)"
        r"(?=[\w-]{4,}[.,;]?\s*(?:\n|\Z))|(?:密码|口令)\s*(?:是|为|=|:|：)\s*(?=[\x21-\x7e]{4}))"
        r"(?:\"[^\"\n]+\"|'[^'\n]+'|[^\s,;，。；]+)"
    ),
    "cookie": re.compile(
        r"(?i)(?<![\w-])(?:set-)?cookie\s*:\s*[^\s=;,]+=[^\r\n]*"
        r"|(?<![\w-])(?:session(?:_?id)?|sessid|sid|csrftoken|xsrf-token|connect\.sid|phpsessid|jsessionid"
        r"|auth_?cookie)\s*=\s*(?=[^\s;]*\d)[^\s;,]{8,}"
    ),
    "bearer token": re.compile(
        rf"(?i)(?<![\w-])(?:bearer\s+(?:{_MADE}{{10,}}|[\w.~+/=-]{{20,}})|authorization\s*:\s*(?:basic|bearer|token)\s+\S{{6,}}"
        rf"|basic\s+(?=[a-z0-9+/]*[A-Z0-9])(?=[a-z0-9+/]*\d)[a-z0-9+/]{{12,}}={{0,2}})"
        r"|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"
    ),
    "API key": re.compile(
        r"(?<![\w-])(?:sk|pk|rk)[-_](?=[\w-]*\d)[\w-]{12,}|\bsk-[\w-]{16,}"
        r"|\b(?:sk|pk|rk)_(?:live|test)_\w{10,}|\bwhsec_[\w+/=-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
        r"|\b(?:ghp|gho|ghu|ghs|ghr)_\w{16,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeprs]-[\w-]{10,}|\bgsk_\w{10,}"
        r"|\bxai-\w{10,}|\bhf_\w{10,}|\bnpm_\w{20,}|\bpypi-[\w-]{20,}|\bSG\.[\w-]{12,}\.[\w-]{12,}|\bya29\.[\w-]{20,}"
        r"|\bdop_v1_\w{20,}|\bshp(?:at|ss|ca)_\w{20,}"
        r"|(?i:(?<![a-z])(?:api|access|secret|account|auth|client|private)[-_ ]?(?:key|token|secret)(?:[-_ ]?id)?['\"]?"
        rf"\s*(?:=|:|：|是|\bis\b)\s*['\"]?{_MADE}{{8,}})"
        # A word of its own kind before what a machine made: "my token is 8f3a…", "SECRET=8f3a…".
        rf"|(?i:(?<![a-z])(?:key|token|secret)['\"]?\s*(?:=|:|：|是|\bis\b)\s*['\"]?(?=[\w.~+/=-]*[a-z])(?![\w-]*://)"
        rf"{_MADE}{{16,}})"
        r"|(?i:(?<=[?&])(?:key|token|secret|sig|signature|access_token|api_key|apikey|auth)=[\w.~+/%=-]{8,})"
    ),
}
# Full-width digits are digits too; the blanks between groups are one to three.
_CARD = re.compile(
    r"(?<![0-9A-Za-z_.-])(?:\d{13,19}|\d{4}([ .\u3000-]{1,3})\d{4}\1\d{4}\1\d{1,4}(?:\1\d{1,3})?"
    r"|\d{4}([ .\u3000-]{1,3})\d{6}\2\d{4,5})(?![0-9A-Za-z_-]|\.\d)"
)


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
    for kind, shape in _SHAPES.items():
        for match in shape.finditer(text):
            if REDACTED not in match.group():
                yield kind, match.start(), match.end()
    for match in _CARD.finditer(text):
        digits = "".join(str(int(sign)) for sign in match.group() if sign.isdecimal())
        # The first digits of cards: 3 to 6, and 2221 to 2720.
        issued = digits[0] in "3456" or 2221 <= int(digits[:4]) <= 2720
        if issued and len(set(digits)) > 1 and luhn_holds(digits):
            yield "card number", match.start(), match.end()
    for value in _values(os.environ if environment is None else environment):
        begin = text.find(value)
        while begin >= 0:
            yield "secret of this server", begin, begin + len(value)
            begin = text.find(value, begin + len(value))


def luhn_holds(digits: str) -> bool:
    """Whether the last digit is the check digit of the others (ISO/IEC 7812)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _values(environment: Mapping[str, str]) -> set[str]:
    """Values of variables whose names say that they are secret."""
    named = {value.strip() for name, value in environment.items() if _SECRET_NAME.search(name)}
    return {value for value in named if len(value) >= ENVIRONMENT_MIN_CHARS}
