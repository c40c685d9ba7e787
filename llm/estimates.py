"""Token counts before a call: characters weighted by script, corrected for each model by what its usage has shown."""

import asyncio
import re
import threading
from dataclasses import dataclass

from llm.catalog import Model
from maxclaw import clock

# Tokens for each character, by what byte-pair tokenizers do with text of that kind.
LETTER = 0.24
DIGIT = 0.45
PUNCTUATION = 0.5
NEWLINE = 0.35
# Runs of letters and digits that are no words (base64, digests, identifiers): about two characters a token.
RUN = 0.55
LATIN_SUPPLEMENT = 0.5
TWO_BYTE_SCRIPT = 0.45  # Greek, Cyrillic, Hebrew, Arabic
IDEOGRAPH = 1.0
KANA_HANGUL = 0.9
OTHER_SCRIPT = 0.75  # Thai, the scripts of India, punctuation and symbols beyond Latin
ASTRAL = 2.0  # emoji and what else lies beyond the basic plane

_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_DIGITS = bytes(range(48, 58))
_BLANKS = b" \t\r\x00"
_RUNS = re.compile(rb"[A-Za-z0-9+/_=-]{25,}")
_IDEOGRAPHS = re.compile("[㐀-䶿一-鿿豈-﫿]+")
_KANA_HANGUL = re.compile("[぀-ヿ가-힯ᄀ-ᇿ]+")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]+")

# Weight of the catalog's ratio against what usage shows, in estimated tokens; and how fast old calls fade.
PRIOR_TOKENS = 4_000
MEMORY_TOKENS = 400_000
SEED_CALLS = 50
# A process compares its first requests with their usage, then one now and then.
FIRST_SAMPLES = 3
SAMPLE_SECONDS = 600
LOWEST_RATIO, HIGHEST_RATIO = 0.25, 4.0
# No text has more tokens by any estimate: what is short enough by this needs no count.
MOST_TOKENS_PER_CHAR = int(ASTRAL * HIGHEST_RATIO)


@dataclass
class _Evidence:
    estimated: float = 0.0
    actual: float = 0.0

    def add(self, estimated: int, actual: int) -> None:
        self.estimated += estimated
        self.actual += actual
        if self.estimated > MEMORY_TOKENS:
            fade = MEMORY_TOKENS / self.estimated
            self.estimated *= fade
            self.actual *= fade


_evidence: dict[str, _Evidence] = {}
# How many samples of a model this process took, and when it took the last, on the monotonic clock.
_samples: dict[str, tuple[int, float]] = {}
_lock = threading.Lock()


def estimate_tokens(text: str, model: Model | None = None) -> int:
    """About how many tokens `text` has: in general, or with `model` as its past usage corrects it.

    Linear and fast: a million characters take some ten milliseconds.
    """
    tokens = _ascii_tokens(text)
    if not text.isascii():
        tokens += _wide_tokens(text)
    if model is not None:
        tokens *= ratio(model)
    return round(tokens)


def within_share(text: str, share: float, model: Model) -> bool:
    """Whether `text` takes at most this share of the model's context budget, by estimate."""
    return estimate_tokens(text, model) <= share * model.context_budget


def ratio(model: Model) -> float:
    """Tokens of this model for each token of the general estimate."""
    evidence = _evidence_for(model.name)
    weight = PRIOR_TOKENS + evidence.estimated
    found = (PRIOR_TOKENS * model.token_ratio + evidence.actual) / weight
    return min(max(found, LOWEST_RATIO), HIGHEST_RATIO)


def record(model_name: str, estimated: int, actual: int, in_ledger: bool = False) -> None:
    """Take one call's usage into account: `estimated` in general, `actual` prompt tokens as the server counted.

    `in_ledger`: the ledger holds it already, so that a first reading of the ledger takes it from there.
    """
    if estimated <= 0 or actual <= 0:
        return
    if in_ledger and model_name not in _evidence:
        _evidence_for(model_name)
        return
    evidence = _evidence_for(model_name)
    with _lock:
        evidence.add(estimated, actual)


def take_sample(model_name: str) -> bool:
    """Whether the request that is about to go out should be compared with its usage. True counts as one taken."""
    with _lock:
        count, last = _samples.get(model_name, (0, 0.0))
        now = clock.monotonic()
        if count >= FIRST_SAMPLES and now - last < SAMPLE_SECONDS:
            return False
        _samples[model_name] = (count + 1, now)
        return True


def forget() -> None:
    """Drop what usage has shown, so that the ledger is read again."""
    with _lock:
        _evidence.clear()
        _samples.clear()


def _evidence_for(name: str) -> _Evidence:
    found = _evidence.get(name)
    if found is not None:
        return found
    if _on_event_loop():
        # The ledger cannot be read here; the catalog's ratio serves until a database thread asks.
        return _Evidence()
    seeded = _from_ledger(name)
    with _lock:
        return _evidence.setdefault(name, seeded)


def _on_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _from_ledger(name: str) -> _Evidence:
    from llm.models import ModelCall

    calls = ModelCall.objects.filter(model=name, estimated_tokens__gt=0, input_tokens__isnull=False)
    columns = ("input_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens")
    evidence = _Evidence()
    newest = list(calls.order_by("-pk").values_list("estimated_tokens", *columns)[:SEED_CALLS])
    for estimated, *counts in reversed(newest):
        evidence.add(estimated, sum(count or 0 for count in counts))
    return evidence


def _ascii_tokens(text: str) -> float:
    raw = text.encode("ascii", "ignore")
    run_chars = 0
    if runs := _RUNS.findall(raw):
        run_chars = sum(map(len, runs))
        raw = _RUNS.sub(b"", raw)
    without_letters = raw.translate(None, _LETTERS)
    without_digits = without_letters.translate(None, _DIGITS)
    marks = without_digits.translate(None, _BLANKS)
    newlines = marks.count(b"\n")
    return (
        (len(raw) - len(without_letters)) * LETTER
        + (len(without_letters) - len(without_digits)) * DIGIT
        + (len(marks) - newlines) * PUNCTUATION
        + newlines * NEWLINE
        + run_chars * RUN
    )


def _wide_tokens(text: str) -> float:
    wide = len(text) - len(text.encode("ascii", "ignore"))
    latin = len(text.encode("latin-1", "ignore")) - (len(text) - wide)
    # UTF-8 lengths tell the scripts of two bytes from the rest without looking at each character.
    astral = sum(map(len, _ASTRAL.findall(text)))
    ideographs = sum(map(len, _IDEOGRAPHS.findall(text)))
    kana_hangul = sum(map(len, _KANA_HANGUL.findall(text)))
    utf8_bytes = len(text.encode("utf-8", "replace"))
    three_bytes = utf8_bytes - (len(text) - wide) - 2 * (wide - astral) - 4 * astral
    two_bytes = wide - astral - three_bytes
    other = max(three_bytes - ideographs - kana_hangul, 0)
    return (
        latin * LATIN_SUPPLEMENT
        + max(two_bytes - latin, 0) * TWO_BYTE_SCRIPT
        + ideographs * IDEOGRAPH
        + kana_hangul * KANA_HANGUL
        + other * OTHER_SCRIPT
        + astral * ASTRAL
    )
