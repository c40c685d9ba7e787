"""Configuration from environment variables, read once, refused in one line that names the variable.

`settings.py` is the only reader; everything else asks `django.conf.settings`.
"""

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError


class ConfigurationError(Exception):
    """A missing or malformed variable. The text is one sentence that names it and says what to change."""


class Environment:
    """Typed reads of one mapping of variables. An empty value counts as unset."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.variables = variables

    def text(self, name: str, default: str = "") -> str:
        return self.variables.get(name, "").strip() or default

    def number(self, name: str, default: int, minimum: int = 0, maximum: int | None = None) -> int:
        raw = self.text(name)
        if not raw:
            return default
        try:
            value = int(raw)
        except ValueError:
            raise ConfigurationError(f"{name} must be a whole number, not {raw!r}.") from None
        if value < minimum:
            raise ConfigurationError(f"{name} must be at least {minimum}, not {value}.")
        if maximum is not None and value > maximum:
            raise ConfigurationError(f"{name} must be at most {maximum}, not {value}.")
        return value

    def fraction(self, name: str, default: float, minimum: float = 0.0) -> float:
        raw = self.text(name)
        if not raw:
            return default
        try:
            value = float(raw)
        except ValueError:
            raise ConfigurationError(f"{name} must be a number, not {raw!r}.") from None
        if not math.isfinite(value) or value < minimum:
            raise ConfigurationError(f"{name} must be a number of at least {minimum}, not {raw!r}.")
        return value

    def flag(self, name: str, default: bool) -> bool:
        raw = self.text(name).lower()
        if not raw:
            return default
        if raw in {"1", "true", "yes", "on"}:
            return True
        if raw in {"0", "false", "no", "off"}:
            return False
        raise ConfigurationError(f"{name} must be 1 or 0, not {raw!r}.")

    def words(self, name: str, default: list[str]) -> list[str]:
        raw = self.text(name)
        return [word.strip() for word in raw.split(",") if word.strip()] if raw else default

    def origins(self, name: str) -> list[str]:
        """Origins as a browser names them: scheme, host, and a port that is not the scheme's own; no path."""
        return [_origin(name, word) for word in self.words(name, [])]

    def choice(self, name: str, default: str, choices: set[str]) -> str:
        value = self.text(name, default)
        if value not in choices:
            raise ConfigurationError(f"{name} must be one of {', '.join(sorted(choices))}, not {value!r}.")
        return value

    def path(self, name: str, default: Path) -> Path:
        raw = self.text(name)
        return Path(raw).expanduser().resolve() if raw else default

    def time_zone(self, name: str, default: str) -> str:
        value = self.text(name, default)
        if value == "UTC":  # known without the system's time zone files
            return value
        try:
            ZoneInfo(value)
        except (ValueError, OSError, ZoneInfoNotFoundError):
            raise ConfigurationError(f"{name} must be a time zone such as Europe/Berlin, not {value!r}.") from None
        return value

    def url(self, name: str, default: str = "") -> str:
        raw = self.text(name, default)
        try:
            parts = urlsplit(raw)
            whole = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or True)
        except ValueError:
            whole = False
        if raw and not whole:
            # The value is not repeated: an address may carry a password.
            raise ConfigurationError(f"{name} must be an address such as http://127.0.0.1:8080.")
        return raw.rstrip("/")


def _origin(name: str, word: str) -> str:
    try:
        parts = urlsplit(word)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "*" in word or not plain:
        raise ConfigurationError(f"{name} must list origins such as https://desk.example.org, not {word!r}.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = {"http": 80, "https": 443}[parts.scheme]
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")


def database_settings(url: str, name: str = "DATABASE_URL") -> dict[str, Any]:
    """Django's DATABASES entry for a postgres URL; a Unix socket's folder goes into `?host=/folder`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{name} is not a URL: {error}.") from None
    if parts.scheme not in {"postgres", "postgresql"}:
        raise ConfigurationError(f"{name} must start with postgres:// or postgresql://.")
    if not parts.path.strip("/"):
        raise ConfigurationError(f"{name} must end with the name of a database.")
    options = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": options.pop("host", None) or unquote(parts.hostname or ""),
        "PORT": str(port or options.pop("port", "") or ""),
        "OPTIONS": options,
    }


def exit_with(error: ConfigurationError) -> NoReturn:
    """A configuration error at start is one line, not a traceback."""
    sys.stderr.write(f"maxclaw: {error}\n")
    raise SystemExit(2)


ENVIRONMENT = Environment(os.environ)
