"""Deterministic token counts: characters weighted by script, cheap enough for a body of 10,000 messages."""

from math import ceil

# Characters of one token, by the length of the character in UTF-8: Latin; Greek, Cyrillic, Arabic; CJK;
# emoji.
CHARS_PER_TOKEN = (4.0, 2.0, 1.5, 0.5)
BLOCK_OVERHEAD_TOKENS = 3
IMAGE_TOKENS = 1_500


def token_weight(text: str) -> float:
    """Tokens of `text` as a fraction, so that the weights of pieces add up to the weight of the whole."""
    if text.isascii():
        return len(text) / CHARS_PER_TOKEN[0]
    total = len(text)
    one = len(text.encode("ascii", "ignore"))
    size = len(text.encode("utf-8", "surrogatepass"))
    four = len(text.encode("utf-16-le", "surrogatepass")) // 2 - total
    middle = total - one - four
    three = (size - one - 4 * four) - 2 * middle
    two = middle - three
    return one / CHARS_PER_TOKEN[0] + two / CHARS_PER_TOKEN[1] + three / CHARS_PER_TOKEN[2] + four / CHARS_PER_TOKEN[3]


def count_tokens(text: str) -> int:
    """Tokens of one piece of text, rounded up."""
    return ceil(token_weight(text))
