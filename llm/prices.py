"""What a call used and what that costs by list price."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from llm.catalog_entries import PRICE_KEYS, Prices

PER = Decimal(1_000_000)


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. `input_tokens` are those of the prompt that no cache read or write covers."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_5m_tokens: int = 0
    cache_write_1h_tokens: int = 0
    thinking_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """The whole prompt, however it was billed."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_5m_tokens + self.cache_write_1h_tokens

    @property
    def total_tokens(self) -> int:
        """Prompt and answer: what a budget in tokens counts."""
        return self.prompt_tokens + self.output_tokens

    @classmethod
    def from_wire(cls, usage: Mapping[str, Any]) -> "Usage":
        """The `usage` object of the Messages API, later parts merged over earlier ones.

        Cache writes whose lifetimes the server does not tell apart count as written for 5 minutes.
        """
        written = _count(usage.get("cache_creation_input_tokens"))
        lifetimes = usage.get("cache_creation")
        one_hour = _count(lifetimes.get("ephemeral_1h_input_tokens")) if isinstance(lifetimes, Mapping) else 0
        details = usage.get("output_tokens_details")
        return cls(
            input_tokens=_count(usage.get("input_tokens")),
            output_tokens=_count(usage.get("output_tokens")),
            cache_read_tokens=_count(usage.get("cache_read_input_tokens")),
            cache_write_5m_tokens=max(written - one_hour, 0),
            cache_write_1h_tokens=one_hour,
            thinking_tokens=_count(details.get("thinking_tokens")) if isinstance(details, Mapping) else 0,
        )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def cost(usage: Usage, prices: Prices | None) -> Decimal | None:
    """Dollars. None when a price that this usage needs is missing: never a smaller sum.

    `prices` are dollars for a million tokens, under PRICE_KEYS.
    """
    if prices is None:
        return None
    counts = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_5m_tokens,
        usage.cache_write_1h_tokens,
    )
    total = Decimal(0)
    for key, count in zip(PRICE_KEYS, counts, strict=True):
        price = prices.get(key)
        if count and price is None:
            return None
        total += count * (price or Decimal(0)) / PER
    return total


def prices_to_json(prices: Prices | None) -> dict[str, str | None] | None:
    """The snapshot that ModelCall.prices stores: decimals as text, so that none is rounded."""
    return None if prices is None else {key: _text(prices.get(key)) for key in PRICE_KEYS}


def prices_from_json(stored: Mapping[str, str | None] | None) -> Prices | None:
    """The prices of a stored call."""
    if stored is None:
        return None
    return {key: None if value is None else Decimal(value) for key, value in stored.items()}


def _text(price: Decimal | None) -> str | None:
    return None if price is None else str(price)
