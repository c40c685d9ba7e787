"""The models that MaxClaw may ask: what each of them can hold, costs and may read, and the palettes they
stand in.

`catalog.toml` beside this file is the list; a file named by MAXCLAW_CATALOG overrides it key by key and adds
to it. Which palettes apply follows from the configuration:

- ANTHROPIC_BASE_URL with MAXCLAW_MODEL: that one model in both palettes, reading no category, whatever the
  list says of a model by that name, unless the MAXCLAW_CATALOG file tags it;
- ANTHROPIC_API_KEY: the palettes named `anthropic` (MAXCLAW_MODEL alone replaces the main one);
- neither: the emulator's.

`[palettes.custom]` in the MAXCLAW_CATALOG file wins over all of them.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from llm.catalog_entries import ALL, BUILT_IN_NAME, PRICE_KEYS, Entry, Model, Prices, PriceTier, names_in
from maxclaw.configuration import ConfigurationError

__all__ = [
    "ALL",
    "LIGHT",
    "MAIN",
    "PALETTES",
    "PRICE_KEYS",
    "Catalog",
    "Model",
    "PriceTier",
    "Prices",
    "UnknownModel",
    "categories",
    "emulator_in_use",
    "get",
    "load_catalog",
    "palette",
]

BUILT_IN = Path(__file__).with_name("catalog.toml")
ANTHROPIC_URL = "https://api.anthropic.com"
MAIN, LIGHT = "main", "light"
PALETTES = (MAIN, LIGHT)


class UnknownModel(LookupError):
    """A name that the catalog does not have (any more)."""


@dataclass(frozen=True)
class Catalog:
    """Every model by name, the categories a conversation may carry, and the palettes in use, in order."""

    models: Mapping[str, Model]
    categories: tuple[str, ...]
    palettes: Mapping[str, tuple[Model, ...]]
    emulated: bool


def load_catalog() -> Catalog:
    """The catalog for the current settings, read once. Raises ConfigurationError that names file and key."""
    return _load(
        settings.MAXCLAW_CATALOG,
        settings.ANTHROPIC_API_KEY,
        settings.ANTHROPIC_BASE_URL,
        settings.MAXCLAW_MODEL,
        settings.EMULATOR_URL,
    )


def get(name: str) -> Model:
    """The model of this name. Raises UnknownModel."""
    try:
        return load_catalog().models[name]
    except KeyError:
        raise UnknownModel(f"There is no model named {name} in the catalog.") from None


def palette(name: str) -> tuple[Model, ...]:
    """The models of a palette, best first."""
    return load_catalog().palettes[name]


def categories() -> tuple[str, ...]:
    """The labels that a conversation may carry."""
    return load_catalog().categories


def emulator_in_use() -> bool:
    """Whether the built-in emulator answers, because no model is configured."""
    return load_catalog().emulated


@lru_cache(maxsize=16)
def _load(file: str, api_key: str, base_url: str, chosen: str, emulator_url: str) -> Catalog:
    layers = [(BUILT_IN_NAME, _read(BUILT_IN))]
    if file:
        layers.append((file, _read(Path(file))))
    merged = _Merged(layers)
    known = merged.categories()
    servers = {
        "anthropic": (base_url or ANTHROPIC_URL, api_key),
        "custom": (base_url, api_key),
        "emulator": (emulator_url, "emulator"),
    }
    custom = bool(base_url and chosen)
    models = {name: merged.model(name, known, servers) for name in merged.names()}
    if custom:
        models[chosen] = merged.model(chosen, known, servers, behind_base_url=True)
    elif chosen and chosen not in models:
        raise ConfigurationError(f"MAXCLAW_MODEL names {chosen!r}, which the catalog does not have.")
    palettes = merged.palettes(models, _palettes_name(merged, api_key, base_url))
    if custom and not merged.has_own_palettes:
        palettes = dict.fromkeys(PALETTES, (models[chosen],))
    elif chosen and not merged.has_own_palettes:
        palettes[MAIN] = (models[chosen],)
    emulated = all(model.provider == "emulator" for group in palettes.values() for model in group)
    return Catalog(models, known, palettes, emulated)


def _palettes_name(merged: "_Merged", api_key: str, base_url: str) -> str:
    if merged.has_own_palettes:
        return "custom"
    return "anthropic" if api_key or base_url else "emulator"


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise ConfigurationError(f"MAXCLAW_CATALOG: {path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"MAXCLAW_CATALOG: {path} is not TOML: {error}.") from None


class _Merged:
    """The files as one, every key remembering the file that it came from, for the sake of error messages."""

    def __init__(self, layers: list[tuple[str, dict[str, Any]]]) -> None:
        self.layers = layers
        for file, layer in layers:
            unknown = set(layer) - {"categories", "palettes", "defaults", "unlisted", "models"}
            if unknown:
                raise ConfigurationError(f"{file}: unknown key {sorted(unknown)[0]}.")
            for name in ("palettes", "defaults", "unlisted", "models"):
                if not isinstance(layer.get(name, {}), dict):
                    raise ConfigurationError(f"{file}: {name} must be a table.")

    @property
    def has_own_palettes(self) -> bool:
        return any("custom" in layer.get("palettes", {}) for _file, layer in self.layers)

    def names(self) -> list[str]:
        return list(dict.fromkeys(name for _file, layer in self.layers for name in layer.get("models", {})))

    def categories(self) -> tuple[str, ...]:
        found: tuple[str, ...] = ()
        for file, layer in self.layers:
            if "categories" in layer:
                found = tuple(names_in(layer["categories"], f"{file}: categories"))
        return found

    def palettes(self, models: Mapping[str, Model], name: str) -> dict[str, tuple[Model, ...]]:
        chosen: dict[str, tuple[Model, ...]] = {}
        for file, layer in self.layers:
            group = layer.get("palettes", {}).get(name, {})
            for palette_name, members in group.items():
                where = f"{file}: palettes.{name}.{palette_name}"
                if palette_name not in PALETTES:
                    raise ConfigurationError(f"{where} is no palette; there are {' and '.join(PALETTES)}.")
                names = names_in(members, where)
                missing = [member for member in names if member not in models]
                if missing or not names:
                    raise ConfigurationError(f"{where} must name models of the catalog, not {missing or '[]'}.")
                chosen[palette_name] = tuple(models[member] for member in names)
        for palette_name in PALETTES:
            if palette_name not in chosen:
                raise ConfigurationError(f"{self.layers[-1][0]}: palettes.{name}.{palette_name} is missing.")
        return chosen

    def model(
        self,
        name: str,
        known: tuple[str, ...],
        servers: Mapping[str, tuple[str, str]],
        behind_base_url: bool = False,
    ) -> Model:
        entry = Entry(name)
        listed = name in self.names()
        for file, layer in self.layers:
            entry.add(file, layer.get("defaults", {}))
            if not listed:
                entry.add(file, layer.get("unlisted", {}))
        for file, layer in self.layers:
            if name in layer.get("models", {}):
                entry.home = file
                entry.add(file, layer["models"][name])
        if behind_base_url:
            entry.values["provider"] = "custom"
            if entry.files.get("reads", BUILT_IN_NAME) == BUILT_IN_NAME:
                entry.values["reads"] = []
        return entry.build(known, servers)
