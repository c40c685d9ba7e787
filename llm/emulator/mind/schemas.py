"""Values that fit a JSON schema, filled by rule."""

from collections.abc import Mapping
from typing import Any


def fill(schema: Mapping[str, Any], text: str, known: Mapping[str, Any] | None = None) -> Any:
    """A small value that fits `schema`; strings become `text` where nothing else is said.

    `known` gives values of properties by name; those that `schema` does not have are left out.
    """
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key) and "type" not in schema:
            return fill(schema[key][0], text, known)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        return _object(schema, text, known or {})
    if kind == "array":
        return [fill(schema.get("items", {}), text, known) for _ in range(schema.get("minItems", 0))]
    if kind == "integer":
        return int(schema.get("minimum", 0))
    if kind == "number":
        return schema.get("minimum", 0)
    if kind == "boolean":
        return False
    return None if kind == "null" else text[: schema.get("maxLength", len(text))]


def _object(schema: Mapping[str, Any], text: str, known: Mapping[str, Any]) -> dict[str, Any]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    values: dict[str, Any] = {}
    for name, inner in properties.items():
        if name in known:
            fits = not inner.get("enum") or known[name] in inner["enum"]
            values[name] = known[name] if fits else inner["enum"][0]
        elif name in schema.get("required", ()):
            values[name] = fill(inner, text)
    return values
