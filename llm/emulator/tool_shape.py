"""Tool definitions and tool_choice: names, schemas and the choice between them."""

import json
import re
from collections import OrderedDict
from typing import Any

import jsonschema
from jsonschema.protocols import Validator

from llm.emulator.block_shape import check_cache_control, refuse_extra
from llm.emulator.errors import ApiError

NAME_PATTERN = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
TOOL_FIELDS = frozenset(
    {
        "type",
        "name",
        "description",
        "input_schema",
        "cache_control",
        "strict",
        "input_examples",
        "allowed_callers",
        "defer_loading",
        "eager_input_streaming",
    }
)
CHOICES = ("auto", "any", "tool", "none")
CHOICE_FIELDS = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "disable_parallel_tool_use", "name"}),
    "none": frozenset({"type"}),
}
REMEMBERED_SCHEMAS = 1_000

_META_SCHEMA: type[Validator] = jsonschema.Draft202012Validator
_sound_schemas: OrderedDict[str, None] = OrderedDict()


def check_tools(tools: Any) -> list[dict[str, Any]]:
    """Check the tool list and return it. Raises ApiError that names tool and field."""
    if tools is None:
        return []
    if not isinstance(tools, list):
        raise ApiError("tools: Input should be a valid list")
    names: set[str] = set()
    for number, tool in enumerate(tools):
        _check_tool(tool, f"tools.{number}")
        if tool["name"] in names:
            raise ApiError("tools: Tool names must be unique.")
        names.add(tool["name"])
    return tools


def _check_tool(tool: Any, path: str) -> None:
    if not isinstance(tool, dict):
        raise ApiError(f"{path}: Input should be a valid dictionary")
    if tool.get("type") not in (None, "custom"):
        raise ApiError(
            f"{path}: Input tag '{tool['type']}' found using 'type' does not match any of the expected tags: 'custom'"
        )
    path_custom = f"{path}.custom"
    for name in ("name", "input_schema"):
        if name not in tool:
            raise ApiError(f"{path_custom}.{name}: Field required")
    refuse_extra(tool, TOOL_FIELDS, path_custom)
    if not isinstance(tool["name"], str) or not NAME_PATTERN.match(tool["name"]):
        raise ApiError(f"{path_custom}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
    if not isinstance(tool.get("description", ""), str):
        raise ApiError(f"{path_custom}.description: Input should be a valid string")
    check_cache_control(tool.get("cache_control"), path)
    schema = tool["input_schema"]
    if not isinstance(schema, dict):
        raise ApiError(f"{path_custom}.input_schema: Input should be a valid dictionary")
    if "type" not in schema:
        raise ApiError(f"{path_custom}.input_schema.type: Field required")
    if schema["type"] != "object":
        raise ApiError(f"{path_custom}.input_schema.type: Input should be 'object'")
    _check_schema(schema, path_custom)
    if tool.get("strict") and schema.get("additionalProperties") is not False:
        raise ApiError(f"{path_custom}: For 'object' type, 'additionalProperties' must be explicitly set to false")


def _check_schema(schema: dict[str, Any], path: str) -> None:
    key = json.dumps(schema, sort_keys=True)
    if key in _sound_schemas:
        return
    try:
        _META_SCHEMA.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ApiError(
            f"{path}.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12."
        ) from error
    _sound_schemas[key] = None
    if len(_sound_schemas) > REMEMBERED_SCHEMAS:
        _sound_schemas.popitem(last=False)


def check_tool_choice(choice: Any, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Check tool_choice against the tools and return it in full, with its defaults.

    Returns `{"type": ..., "name": str | None, "disable_parallel_tool_use": bool}`.
    """
    if choice is None:
        return {"type": "auto", "name": None, "disable_parallel_tool_use": False}
    if not isinstance(choice, dict):
        raise ApiError("tool_choice: Input should be a valid dictionary")
    kind = choice.get("type")
    if kind is None:
        raise ApiError("tool_choice.type: Field required")
    if kind not in CHOICES:
        tags = ", ".join(f"'{tag}'" for tag in CHOICES)
        raise ApiError(
            f"tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}"
        )
    refuse_extra(choice, CHOICE_FIELDS[kind], f"tool_choice.{kind}")
    if not tools:
        raise ApiError("tool_choice may only be specified while providing tools")
    name = choice.get("name")
    if kind == "tool":
        if name is None:
            raise ApiError("tool_choice.tool.name: Field required")
        if all(tool["name"] != name for tool in tools):
            raise ApiError(f"Tool '{name}' not found in provided tools")
    parallel = choice.get("disable_parallel_tool_use", False)
    if not isinstance(parallel, bool):
        raise ApiError(f"tool_choice.{kind}.disable_parallel_tool_use: Input should be a valid boolean")
    return {"type": kind, "name": name, "disable_parallel_tool_use": parallel}
