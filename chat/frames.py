"""What a browser may say over the socket: JSON objects whose "type" and fields are listed here, and nothing
else.

| type | fields |
|---|---|
| open | channel, after (number of the last event seen, or null) |
| close | channel |
| send | channel, key, text, quote (a pointer, or null), confirmed (true, or anything else for no), confirm_text |
| stop | channel, frame |
| answer | channel, call, text |
| earlier | channel, before (message id) |
| later | channel, since (message id) |
| ping | |

A frame of more than FRAME_MAX_BYTES is answered with a sentence; words of the default greatest length fit in any
script and however they are escaped, and longer ones go by the REST API. A socket that sends more than
settings.SOCKET_MAX_BYTES at once is closed by the server.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

FRAME_MAX_BYTES = 3 * 1024**2
BIGGEST_ID = 2**63 - 1

Frame = dict[str, Any]
Check = Callable[[Any], bool]


class BadFrame(Exception):
    """A frame that is none: `code` for programs, the sentence for people."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


def _is_id(value: Any) -> bool:
    return type(value) is int and 0 <= value <= BIGGEST_ID


def _is_id_or_null(value: Any) -> bool:
    return value is None or _is_id(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_channel(value: Any) -> bool:
    # It comes back in answers: no sign that these cannot hold.
    return isinstance(value, str) and value.isascii()


def _is_judged_later(_value: Any) -> bool:
    # What is wrong with a quote is said by the answer to its message, which gives the words back.
    return True


def _is_key(value: Any) -> bool:
    # A key comes back in frames and logs: printable ASCII only.
    return isinstance(value, str) and re.fullmatch(r"[!-~]{1,100}", value) is not None


SHAPES: dict[str, dict[str, Check]] = {
    "open": {"channel": _is_channel, "after": _is_id_or_null},
    "close": {"channel": _is_channel},
    "send": {
        "channel": _is_channel,
        "key": _is_key,
        "text": _is_text,
        "quote": _is_judged_later,
        "confirmed": _is_judged_later,
        "confirm_text": _is_judged_later,
    },
    "stop": {"channel": _is_channel, "frame": _is_id},
    "answer": {"channel": _is_channel, "call": _is_id, "text": _is_text},
    "earlier": {"channel": _is_channel, "before": _is_id},
    "later": {"channel": _is_channel, "since": _is_id},
    "ping": {},
}
# May be left out: "after" by a page that has seen nothing yet, the others by a message that quotes nothing.
OPTIONAL = {"after", "quote", "confirmed", "confirm_text"}


def parse(text: str | None, data: bytes | None) -> Frame:
    """The frame in one socket message. Raises BadFrame with a sentence that says what is wrong with it."""
    if text is None:
        raise BadFrame("malformed", _("Only text frames are understood, not binary ones."))
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > FRAME_MAX_BYTES:
        raise BadFrame(
            "too-large",
            _("This frame has %(size)s bytes; at most %(limit)s are accepted.")
            % {"size": f"{size:,}", "limit": f"{FRAME_MAX_BYTES:,}"},
        )
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        raise BadFrame("malformed", _("This frame is not JSON.")) from None
    if not isinstance(frame, dict):
        raise BadFrame("malformed", _("A frame is a JSON object with a type."))
    kind = frame.get("type")
    shape = SHAPES.get(kind) if isinstance(kind, str) else None
    if shape is None:
        raise BadFrame(
            "unknown-type",
            _("This type of frame is unknown. Known ones: %(types)s.") % {"types": ", ".join(SHAPES)},
        )
    for name, check in shape.items():
        if (name in frame or name not in OPTIONAL) and not check(frame.get(name)):
            raise BadFrame("malformed", _("The field %(name)s of this frame is missing or wrong.") % {"name": name})
    return {"type": kind, **{name: frame.get(name) for name in shape}}


def said(text: str | None) -> Frame:
    """What a refused frame was about, as far as it can be made out, so that a page knows where to show the error and
    which words were refused: `channel`, `about` (its type) and `key`."""
    try:
        frame = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(frame, dict):
        return {}
    channel, kind, key = frame.get("channel"), frame.get("type"), frame.get("key")
    return {
        **({"channel": channel} if isinstance(channel, str) and re.fullmatch(r"[a-z0-9]{1,20}", channel) else {}),
        **({"about": kind} if isinstance(kind, str) and kind in SHAPES else {}),
        **({"key": key} if _is_key(key) else {}),
    }
