"""Telling whether a sentence was said by the person as it stands: whole, in their own words, and as a statement.

Rules, not understanding: in doubt it was not. A sentence stands by itself where the one before it has ended, so that
neither "It is not true that" nor "My brother wrote:" precedes it.
"""

import re
import unicodedata

from memory.own_words import own_words

_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|「[^」]*」|『[^』]*』|«[^»]*»|(?<!\w)'[^'\n]*'(?!\w)")
# What follows a line that ends with a colon may be anybody's, and how far that goes is not known.
_ANNOUNCED = re.compile(r"(?<=[:：])[ \t]*\n.*", re.DOTALL)
# A sentence with its end, or words that end with a paragraph or the text.
_SENTENCE = re.compile(r"\s*(?P<words>.*?)(?P<end>[.!?。！？…]+(?=\s|\Z|(?<=[。！？…]))|\n\s*\n|\Z)", re.DOTALL)
_INTRODUCED = re.compile(
    r"(?i)^(?:(?:as i (?:said|mentioned)(?: before)?|by the way|btw|honestly|to be honest|yes|yeah|well|also|and|so"
    r"|hi|hello|如我所说|我说过|其实|说实话|顺便说一下|对了|是的|嗯|你好)[,，]\s*)+"
)


def says(text: str, sentence: str) -> bool:
    """Whether `sentence` is one whole sentence of the person's in the text: case, width, white space and the mark at
    its end aside."""
    wanted = _plain(sentence.strip().rstrip(".。!！"))
    # Something stays in the place of a quotation, so that what holds one is not what stands around it.
    own = _QUOTED.sub("\ufffc", _ANNOUNCED.sub("", own_words(text)))
    for match in _SENTENCE.finditer(own):
        words = _plain(match["words"])
        if "?" not in match["end"] and "？" not in match["end"] and wanted in (words, _INTRODUCED.sub("", words)):
            return True
    return False


def _plain(words: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", words).casefold().replace("’", "'").split())
