"""The error objects in a body: gateways put each other's into their strings."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NESTING_LIMIT = 6


@dataclass(frozen=True)
class Layer:
    """One error object: the status, type and texts that it gives."""

    status: int | None
    type: str
    text: str


def unwrap(body_text: str, depth: int = 0) -> Iterator[Layer]:
    """Each error object in a body: the outer one, and those that gateways put into its strings as JSON."""
    if depth > NESTING_LIMIT:
        return
    value = _embedded_json(body_text)
    if value is not None:
        yield from _layers(value, depth)


def _embedded_json(text: str) -> Any:
    """The first JSON object in a text (`litellm.X: ProviderException - {...}`), or None."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value


def _layers(value: Any, depth: int) -> Iterator[Layer]:
    if depth > NESTING_LIMIT:
        return
    if isinstance(value, list):
        for item in value:
            yield from _layers(item, depth + 1)
    if not isinstance(value, dict):
        return
    code = value.get("code")
    message = value.get("message")
    texts = [item for item in (code, value.get("type"), value.get("__type"), message) if isinstance(item, str)]
    status = _status_in(code) or _status_in(value.get("status"))
    kind = value.get("type")
    yield Layer(status, kind if isinstance(kind, str) else "", "\n".join(texts))
    for item in value.values():
        if isinstance(item, str):
            yield from unwrap(item, depth + 1)
        else:
            yield from _layers(item, depth + 1)


def _status_in(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:4])
    return value if isinstance(value, int) and 400 <= value <= 599 else None
