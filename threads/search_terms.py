"""What a literal query asks for: itself, word for word, and its words."""

from dataclasses import dataclass

import regex
from django.conf import settings

from maxclaw.text import visible
from threads.history import HistoryRefused
from threads.lexical import STOP_WORDS, is_spaceless, query_words, stem
from threads.transcript import fold

WORD_MIN_CHARS = 3
WORD_MIN_CHARS_SPACELESS = 2
# A longer query, up to the length of a message, is looked for as it stands alone, and no more of it is compared by
# meaning.
WORDS_MAX_CHARS = 10_000
MAX_NEEDLES = 40
# Each is compared with each: of more, the longest ones are, as they are what is looked for.
MAX_COMPARED = 64
QUOTES = "\"'`“”„‘’‚«»‹›「」『』《》"

PUNCTUATION = QUOTES + ".,;:!?…()[]{}<>，。；：！？（）【】、"

# Letters and digits, or a few parts of letters with hyphens or apostrophes between: a word that a text may have in
# another form. More parts are a name, as are digits beside a hyphen.
_PLAIN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}\p{N}]+)*|[\p{L}\p{M}'’]+(?:-[\p{L}\p{M}'’]+){1,2}")
# A syllable of Hangul is a sign that says as much as two letters do, although Korean has spaces.
_HANGUL = regex.compile(r"\p{Hangul}")
# Punctuation, numbers in circles and the like of texts in Han and kana.
_EAST_ASIAN_SIGN = regex.compile(
    "[—…‥·‘’“”\u2ff0-\u303f\u3190-\u319f\u31c0-\u31ef\u3200-\u33ff\u4dc0-\u4dff\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uff65"
    "\uffe0-\uffe6\U0001f200-\U0001f2ff]"
)
_PICTURE = regex.compile(r"\p{Extended_Pictographic}(?<!\p{ASCII})")

EMPTY_QUERY = "The query is empty: say what to search for."
SHORT_QUERY = (
    f"The query is too short: give at least {WORD_MIN_CHARS} characters, or {WORD_MIN_CHARS_SPACELESS} in a script "
    "that writes without spaces or in Korean."
)
LONG_QUERY = "The query is too long: give at most {limit:,} characters, as many as a message may have."


@dataclass(frozen=True)
class Terms:
    """What is searched for, all but `query` folded as `search_text` is. `forms` are the query as given, without spaces
    and without quotes around it, those that are long enough and differ: rows with an earlier form come first. `whole`
    is the last of them: whatever holds the query as given holds that too. `needles` are the pieces of which a text with
    one of its words holds one: words, or where they begin as all their forms do. `compounds` are the words that are
    taken as they stand, such as a path. `is_one_word`: in a script without spaces, so that its needles are pairs of
    signs, which say less than a word."""

    query: str
    whole: str
    forms: tuple[str, ...]
    needles: tuple[str, ...]
    compounds: tuple[str, ...]
    is_one_word: bool


def terms_of(query: str) -> Terms:
    """The terms of a query: of one over WORDS_MAX_CHARS none but itself. Raises HistoryRefused, with what to change,
    for one that asks for nothing or is longer than a message may be."""
    query = visible(query)
    if not query.strip():
        raise HistoryRefused(EMPTY_QUERY)
    if len(query) > settings.MESSAGE_MAX_CHARS:
        raise HistoryRefused(LONG_QUERY.format(limit=settings.MESSAGE_MAX_CHARS))
    bare = query.strip()
    variants = [variant for variant in (query, bare, bare.strip(QUOTES)) if _is_term(variant)]
    parts = bare.split() if len(query) <= WORDS_MAX_CHARS else []
    words = [word for part in parts if _is_term(word := part.strip(QUOTES))]
    if not variants:
        raise HistoryRefused(SHORT_QUERY)
    folded = list(dict.fromkeys(map(fold, words)))
    telling = [word for word in folded if word.strip(PUNCTUATION) not in STOP_WORDS] or folded
    compounds = dict.fromkeys(word for word in telling if _is_compound(word))
    forms = tuple(dict.fromkeys(map(fold, variants)))
    return Terms(
        query=query,
        whole=forms[-1],
        forms=forms,
        needles=_needles([word for word in telling if word not in compounds], list(compounds)),
        compounds=tuple(compounds),
        is_one_word=len(parts) == 1 and is_spaceless(bare),
    )


def _is_compound(word: str) -> bool:
    """Whether a word is taken as it stands, signs included: a path, an address, an identifier."""
    return not is_spaceless(word) and _PLAIN.fullmatch(word.strip(PUNCTUATION)) is None


def _is_term(text: str) -> bool:
    """Whether text is long enough to be searched for. A picture says as much as a word."""
    if len(text) >= WORD_MIN_CHARS:
        return bool(text.strip())
    if _PICTURE.search(text):
        return True
    if _HANGUL.search(text):
        return len(fold(text)) >= WORD_MIN_CHARS_SPACELESS
    is_dense = is_spaceless(text) or _EAST_ASIAN_SIGN.search(text) is not None
    return len(text) >= WORD_MIN_CHARS_SPACELESS and is_dense and bool(text.strip())


def _needles(plain: list[str], compounds: list[str]) -> tuple[str, ...]:
    """What every text that has a word of the query, in any form, holds at least one of; no needle inside another. The
    longest ones where there are too many."""
    parts = [part for word in plain for part in query_words(word)]
    beginnings = {beginning for part in parts if _is_term(beginning := _beginning(part))}
    needles: list[str] = []
    candidates = sorted({*beginnings, *compounds}, key=lambda needle: (-len(needle), needle))[:MAX_COMPARED]
    for candidate in sorted(candidates, key=lambda needle: (len(needle), needle)):
        if not any(needle in candidate for needle in needles):
            needles.append(candidate)
    return tuple(sorted(needles, key=len, reverse=True)[:MAX_NEEDLES])


def _beginning(word: str) -> str:
    """What the forms of a word have in common at their start, where that is long enough to be searched for."""
    root = stem(word)
    shared = next((place for place, pair in enumerate(zip(word, root, strict=False)) if pair[0] != pair[1]), len(root))
    return word[:shared] if shared >= WORD_MIN_CHARS else word
