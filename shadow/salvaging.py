"""What can be read of a proposal call whose input is no sound JSON: the items that are sound stand by themselves.

For a tool that acts, an input in which anything is doubtful is refused whole (`llm.assembly.parse_input`). Items of a
proposal are independent: what is doubtful in one of them says nothing of its siblings.
"""

import json
from typing import Any

from llm.assembly import INPUT_MAX_DEPTH, MALFORMED_KEY
from maxclaw.text import visible_json

# As many as the largest id of a database has, and a sign.
DIGITS_MAX = 20


def salvaged(call_input: dict[str, Any]) -> dict[str, Any]:
    """A call's input as it arrived if it was sound; else what its raw text holds, where that is a JSON object at all.
    In that, an object with a key given twice has a key more that no schema knows, and a number that is none is an
    object, as is what is nested too deep: whatever holds one of them does not hold."""
    if set(call_input) != {MALFORMED_KEY} or not isinstance(raw := call_input[MALFORMED_KEY], str):
        return call_input
    try:
        value = json.loads(
            raw,
            object_pairs_hook=_marked,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_doubtful,
            strict=False,
        )
        return visible_json(_shallow(value, INPUT_MAX_DEPTH)) if isinstance(value, dict) else call_input
    except (ValueError, RecursionError):
        return call_input


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        value[MALFORMED_KEY] = "a key stands in this object twice"
    return value


def _shallow(value: Any, levels: int) -> Any:
    """The value with what is nested deeper than so many levels taken for one thing that nobody can read."""
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        return {MALFORMED_KEY: "nested too deep"}
    if isinstance(value, list):
        return [_shallow(item, levels - 1) for item in value]
    return {key: _shallow(item, levels - 1) for key, item in value.items()}


def _whole(text: str) -> Any:
    return int(text) if len(text) <= DIGITS_MAX else _doubtful(text)


def _finite(text: str) -> Any:
    number = float(text)
    return _doubtful(text) if number in (float("inf"), float("-inf")) else number


def _doubtful(text: str) -> dict[str, str]:
    return {MALFORMED_KEY: f"no number: {text[:40]}"}
