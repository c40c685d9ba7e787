"""A text as it reads: without the signs that nobody sees, and with full-width, bold and other forms of letters, digits
and signs as the plain ones, so that a shape is found however it was written."""

import unicodedata
from functools import lru_cache

# They end an address or a word in Chinese, which their plain forms do not.
_STOPS = "，；。！？（）"
# They join what a "-" does.
_HYPHENS = "\u2010\u2011\u2012\u2013\u2212"
# What is not seen and is no format sign (Cf): joiners, variation selectors, fillers.
_UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE10)}


def as_read(text: str) -> tuple[str, list[int]]:
    """The text as it reads, and for each of its signs the place in `text` that it stands for."""
    if text.isascii():
        return text, list(range(len(text)))
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        read = _read(sign)
        signs.append(read)
        places += [place] * len(read)
    return "".join(signs), places


@lru_cache(maxsize=8_192)
def _read(sign: str) -> str:
    if unicodedata.category(sign) == "Cf" or ord(sign) in _UNSEEN:
        return ""
    if sign in _HYPHENS:
        return "-"
    return sign if sign in _STOPS else unicodedata.normalize("NFKC", sign)
