"""One model of the catalog: what it is, and how its entry in a file is checked."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from maxclaw.configuration import ConfigurationError

# How error messages name the list that comes with MaxClaw.
BUILT_IN_NAME = "llm/catalog.toml"
LIFETIMES = ("5m", "1h")
PRICE_KEYS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
EFFORTS = ("", "low", "medium", "high", "xhigh", "max")
THINKING_MODES = ("off", "adaptive", "disabled")
MINIMUM_THINKING_BUDGET = 1_024
# What a request asks for when nothing else limits it. An answer beyond it is an exception, and a larger
# reservation would make a gateway that adds input and output refuse requests that fit.
DEFAULT_ANSWER_TOKENS = 32_000


class _All(frozenset[str]):
    """The set of every category."""

    def __contains__(self, category: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _All)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, _All)

    def __hash__(self) -> int:
        return hash("ALL")

    def __repr__(self) -> str:
        return "ALL"


ALL: Final = _All()


def may_read(categories: frozenset[str], category: str) -> bool:
    """Whether what is tagged with some categories may get words of a conversation with this label (blank: none)."""
    return not category or category in categories


Prices = dict[str, Decimal | None]


@dataclass(frozen=True)
class PriceTier:
    """Dollars for a million tokens, for prompts of at most `up_to_prompt_tokens` (None: any length)."""

    up_to_prompt_tokens: int | None
    prices: Prices


@dataclass(frozen=True)
class Model:
    """One model. Sizes are tokens.

    `name` is the catalog's, `wire_id` what its server calls it. `context_budget` is what MaxClaw fills at
    most. `thinking` is "off" (nothing is sent), "adaptive", "disabled", or a number of tokens (manual mode).
    `token_ratio` corrects the general estimate before usage is known.
    """

    name: str
    provider: str
    wire_id: str
    context_window: int
    output_limit: int
    context_budget: int
    base_url: str
    api_key: str = field(repr=False)
    system_lifetime: str = "1h"
    message_lifetime: str = "5m"
    cache_minimum_tokens: int = 512
    price_tiers: tuple[PriceTier, ...] = ()
    categories: frozenset[str] = frozenset()
    thinking: str | int = "off"
    effort: str = ""
    counts_tokens: bool = True
    token_ratio: float = 1.0

    def reads(self, category: str) -> bool:
        """Whether a conversation with this label (blank: none) may be sent to it."""
        return may_read(self.categories, category)

    @property
    def prices(self) -> Prices | None:
        """Dollars for a million tokens of a short prompt; None when no price is known."""
        return self.prices_for(0)

    def prices_for(self, prompt_tokens: int) -> Prices | None:
        """Dollars for a million tokens in a prompt of this length, under PRICE_KEYS; None where unknown."""
        for tier in self.price_tiers:
            if tier.up_to_prompt_tokens is None or prompt_tokens <= tier.up_to_prompt_tokens:
                return tier.prices
        return None

    @property
    def answer_tokens(self) -> int:
        """The `max_tokens` of a request that has no reason for another."""
        return min(self.output_limit, DEFAULT_ANSWER_TOKENS)

    @property
    def demands_thinking_in_open_round(self) -> bool:
        """In manual mode the answer that a tool round belongs to must go back with its thinking."""
        return isinstance(self.thinking, int)

    def thinking_parameter(self) -> dict[str, Any] | None:
        """The `thinking` of a header by this model's default; None: left out."""
        if isinstance(self.thinking, int):
            return {"type": "enabled", "budget_tokens": self.thinking}
        return None if self.thinking == "off" else {"type": self.thinking}


class Entry:
    """One model while its keys are checked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, Any] = {}
        self.files: dict[str, str] = {}
        self.home = BUILT_IN_NAME

    def add(self, file: str, values: Any) -> None:
        if not isinstance(values, dict):
            raise ConfigurationError(f"{file}: models.{self.name} must be a table.")
        self.values.update(values)
        self.files.update(dict.fromkeys(values, file))

    def source(self, key: str) -> str:
        """The file that gave this key; for a key that nobody gave, the last one that speaks of the model."""
        return self.files.get(key, self.home)

    def refuse(self, key: str, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self.source(key)}: models.{self.name}.{key} {problem}.")

    def take(self, key: str, kind: type | tuple[type, ...], what: str, default: Any = None) -> Any:
        value = self.values.pop(key, default)
        if value is None:
            raise self.refuse(key, "is missing")
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.refuse(key, f"must be {what}, not {value!r}")
        return value

    def size(self, key: str) -> int:
        value: int = self.take(key, int, "a whole number")
        if value < 1:
            raise self.refuse(key, f"must be at least 1, not {value}")
        return value

    def one_of(self, key: str, choices: tuple[str, ...]) -> str:
        value: str = self.take(key, str, "text")
        if value not in choices:
            raise self.refuse(key, f"must be one of {', '.join(choice or '(blank)' for choice in choices)}")
        return value

    def build(self, known: tuple[str, ...], servers: Mapping[str, tuple[str, str]]) -> Model:
        window, output = self.size("context_window"), self.size("output_limit")
        budget = self.size("context_budget")
        if budget > window - output:
            raise self.refuse(
                "context_budget",
                f"is {budget}, more than the window less the output limit ({window} - {output})",
            )
        system, message = (
            self.one_of("system_lifetime", LIFETIMES),
            self.one_of("message_lifetime", LIFETIMES),
        )
        if system == "5m" and message == "1h":
            raise self.refuse("message_lifetime", "must not be longer than system_lifetime")
        provider = self.take("provider", str, "text")
        base_url, api_key = self.server(provider, servers)
        model = Model(
            name=self.name,
            provider=provider,
            wire_id=self.take("wire_id", str, "text", default=self.name),
            context_window=window,
            output_limit=output,
            context_budget=budget,
            base_url=base_url,
            api_key=api_key,
            system_lifetime=system,
            message_lifetime=message,
            cache_minimum_tokens=self.size("cache_minimum_tokens"),
            price_tiers=self.prices(),
            categories=self.reads(known),
            thinking=self.thinking(output),
            effort=self.one_of("effort", EFFORTS),
            counts_tokens=self.take("counts_tokens", bool, "true or false"),
            token_ratio=float(self.take("token_ratio", (int, Decimal), "a number")),
        )
        if self.values:
            raise self.refuse(sorted(self.values)[0], "is no key of a model")
        return model

    def server(self, provider: str, servers: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
        """Address and key. `base_url` and `api_key_env` (the name of a variable) win over the provider's."""
        base_url, api_key = servers.get(provider, ("", ""))
        base_url = self.take("base_url", str, "text", default=base_url).rstrip("/")
        variable = self.take("api_key_env", str, "text", default="")
        return base_url, os.environ.get(variable, "") if variable else api_key

    def thinking(self, output_limit: int) -> str | int:
        value: str | int = self.take("thinking", (str, int), "text or a number")
        if isinstance(value, str) and value not in THINKING_MODES:
            raise self.refuse("thinking", f"must be one of {', '.join(THINKING_MODES)} or a number of tokens")
        if isinstance(value, int) and not MINIMUM_THINKING_BUDGET <= value < output_limit:
            raise self.refuse("thinking", f"must be between {MINIMUM_THINKING_BUDGET} and the output limit")
        return value

    def reads(self, known: tuple[str, ...]) -> frozenset[str]:
        value = self.values.pop("reads", [])
        if value == "all":
            return ALL
        labels = names_in(value, f"{self.source('reads')}: models.{self.name}.reads")
        unknown = [label for label in labels if label not in known]
        if unknown:
            raise self.refuse("reads", f"names {unknown[0]!r}, which is not among the categories")
        return frozenset(labels)

    def prices(self) -> tuple[PriceTier, ...]:
        value = self.values.pop("prices", [])
        tables = value if isinstance(value, list) else [value]
        tiers = []
        for table in tables:
            if not isinstance(table, dict):
                raise self.refuse("prices", "must be a table or a list of tables")
            table = dict(table)
            limit = table.pop("up_to_prompt_tokens", None)
            prices: Prices = {key: self.price(key, table.pop(key, None)) for key in PRICE_KEYS}
            if table:
                raise self.refuse("prices", f"has no {sorted(table)[0]}; there are {', '.join(PRICE_KEYS)}")
            tiers.append(PriceTier(limit, prices))
        limits = [tier.up_to_prompt_tokens for tier in tiers]
        if any(limit is None for limit in limits[:-1]) or (limits and limits[-1] is not None):
            raise self.refuse("prices", "must give up_to_prompt_tokens in every tier but the last")
        return tuple(tiers)

    def price(self, key: str, value: Any) -> Decimal | None:
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value < 0:
            raise self.refuse("prices", f"needs a number of dollars for {key}, not {value!r}")
        return Decimal(value)


def names_in(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ConfigurationError(f"{where} must be a list of names, not {value!r}.")
    return value
