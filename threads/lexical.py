"""Ranking by words: BM25 over stems of words and pairs of characters.

Pure functions over texts with a key each. Search ranks excerpts with it; whatever else asks which texts speak of the
same matter as a request may use it too.
"""

import re
import threading
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Mapping
from functools import lru_cache
from math import log
from typing import Generic, TypeVar

import snowballstemmer

from threads.transcript import fold

# Saturation of repeated words and how much a long text is held against it: the usual values, of which short messages
# and passages of one size are not sensitive.
K1 = 1.2
B = 0.75

# Scripts written without spaces between words, whole, with their digits and signs: Han (radicals, numerals and
# compatibility forms too), kana, Bopomofo, Yi, Tangut, Khitan, Nushu; those whose lines break by a dictionary (Thai,
# Lao, Burmese, Khmer, Tai Le, New Tai Lue, Tai Tham, Tai Viet, Ahom) or by syllables (Tibetan, Phags-pa, Balinese,
# Batak, Javanese, Cham, Brahmi, Grantha, Tulu-Tigalari, Dives Akuru, Makasar, Kawi, Gurung Khema); cuneiform and
# hieroglyphs.
# As ranges, because `re` reads them in a fraction of the time that `regex` takes for the properties of Unicode.
SPACELESS = (
    "\u02ea\u02eb\u0e01-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f"
    "\u1bc0-\u1bff\u2e80-\u2fdf\u3005-\u3007\u3021-\u302d\u3031-\u303c\u3041-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u32d0-\u32fe\u3300-\u3357\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua840-\ua87f\ua980-\ua9df\ua9e0-\ua9ff"
    "\uaa00-\uaa7f\uaa80-\uaadf\uf900-\ufaff\uff66-\uff9f\U00011000-\U0001107f\U00011300-\U000113ff"
    "\U000116d0-\U0001174f\U00011900-\U0001195f\U00011ee0-\U00011f5f\U00012000-\U0001467f\U00016100-\U0001613f"
    "\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff\U0001f200\U00020000-\U0003ffff"
)
_TOKEN = re.compile(f"[{SPACELESS}]+|[^\\W_{SPACELESS}]+(?:['’][^\\W_{SPACELESS}]+)*")
_SPACELESS_SIGN = re.compile(f"[{SPACELESS}]")
_LATIN = re.compile("[a-z\u00df-\u024f\u1e00-\u1eff'’]+")

# Words that carry grammar and not matter, folded. They count for nothing in a query that has other words.
_STOP_WORD_LIST = """
    a about after again all also am an and any are aren't as at be because been before being both but by can can't
    could couldn't did didn't do does doesn't doing don't during each few for from further get got had hadn't has
    hasn't have haven't having he her here hers herself him himself his how i i'd i'll i'm i've if in into is isn't it
    it's its itself just let let's me more most my myself no nor not now of off on once only or other our ours
    ourselves out over own same she should shouldn't so some such than that that's the their theirs them themselves
    then there these they they're this those through to too under until up us very was wasn't we we're were weren't
    what what's when where which while who whom whose why will with won't would wouldn't you you're your yours
    yourself yourselves
    什么 怎么 怎样 哪里 哪个 多少 我们 你们 他们 她们 这个 那个 的是 是什 是不 不是 有没 没有 吗 呢 了 的
"""
STOP_WORDS = frozenset(_STOP_WORD_LIST.split())

Key = TypeVar("Key", bound=Hashable)

_stemmers = threading.local()


def is_spaceless(text: str) -> bool:
    """Whether text has a sign of a script that writes without spaces."""
    return _SPACELESS_SIGN.search(text) is not None


def tokens(text: str, initials: Container[str] | None = None) -> list[str]:
    """What texts are compared by, in order, repeats included: the stem of each word in Latin script, other words as
    they are, and every pair of neighbours where a script writes without spaces (a sign alone stands for itself).
    Without case. Given `initials`, words that begin otherwise keep their ending."""
    return [
        token
        for found in _TOKEN.findall(fold(text))
        for token in (_words_of(found) if _SPACELESS_SIGN.match(found) else [_stem_if(found, initials)])
    ]


def query_tokens(query: str) -> list[str]:
    """The distinct tokens of a query, without stop words unless it has nothing else."""
    return list(dict.fromkeys(token if is_spaceless(token) else stem(token) for token in query_words(query)))


def query_words(query: str) -> list[str]:
    """The same before stemming: distinct folded words, and pairs of signs of scripts without spaces."""
    every = [word for found in _TOKEN.findall(fold(query)) for word in _words_of(found)]
    return list(dict.fromkeys([word for word in every if word not in STOP_WORDS] or every))


def bm25(query: str, texts: Mapping[Key, str], population: int = 0) -> dict[Key, float]:
    """The score of every text that shares a token with the query, above zero; higher is closer. `population` as for a
    Corpus."""
    # A stem begins as its word does, so words with other initials need none to be told from the query's.
    initials = {token[0] for token in query_tokens(query)}
    return Corpus(texts.items(), population, initials).scores(query)


class Corpus(Generic[Key]):
    """Texts prepared for many queries. `population` is how many texts there are in all, where the given ones are
    only those that may share a word with the query; it makes rare words of common ones no rarer than they are."""

    def __init__(
        self, texts: Iterable[tuple[Key, str]], population: int = 0, initials: Container[str] | None = None
    ) -> None:
        self._counts: dict[Key, Counter[str]] = {}
        self._lengths: dict[Key, int] = {}
        self._holders: dict[str, list[Key]] = {}
        for key, text in texts:
            found = tokens(text, initials)
            self._counts[key] = counts = Counter(found)
            self._lengths[key] = len(found)
            for token in counts:
                self._holders.setdefault(token, []).append(key)
        self._population = max(population, len(self._counts))
        self._mean_length = sum(self._lengths.values()) / max(len(self._lengths), 1) or 1.0

    def scores(self, query: str) -> dict[Key, float]:
        """The BM25 score of every text that shares a token with the query, above zero."""
        scores: dict[Key, float] = {}
        for token in query_tokens(query):
            holders = self._holders.get(token, [])
            weight = rarity(self._population, len(holders))
            for key in holders:
                count = self._counts[key][token]
                length = 1 - B + B * self._lengths[key] / self._mean_length
                scores[key] = scores.get(key, 0.0) + weight * count * (K1 + 1) / (count + K1 * length)
        return scores


def rarity(population: int, holders: int) -> float:
    """How much a token that `holders` of `population` texts have tells, above zero (inverse document frequency)."""
    return log(1 + (max(population, holders) - holders + 0.5) / (holders + 0.5))


def stem(word: str) -> str:
    """The stem of a folded word in Latin script; any other word as it is."""
    return _stem(word) if _LATIN.fullmatch(word) else word


def _stem_if(word: str, initials: Container[str] | None) -> str:
    return stem(word) if initials is None or word[0] in initials else word


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    # A stemmer keeps the word it works on in itself, so each thread has its own.
    stemmer = getattr(_stemmers, "english", None)
    if stemmer is None:
        stemmer = _stemmers.english = snowballstemmer.stemmer("english")
    return str(stemmer.stemWord(word.replace("’", "'")))


def _words_of(found: str) -> list[str]:
    if not _SPACELESS_SIGN.match(found):
        return [found.replace("’", "'")]
    return [found[place : place + 2] for place in range(max(len(found) - 1, 1))]
