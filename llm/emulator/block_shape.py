"""The shape of content blocks: fields, types and places, refused in the API's own sentences."""

import re
from collections.abc import Mapping
from typing import Any

from llm.emulator.errors import ApiError

ID_PATTERN = re.compile(r"^[a-zA-Z0-9_-]+$")
LIFETIMES = ("5m", "1h")

USER_BLOCKS = ("document", "image", "search_result", "text", "tool_result")
ASSISTANT_BLOCKS = ("redacted_thinking", "text", "thinking", "tool_use")
ALL_BLOCKS = tuple(sorted({*USER_BLOCKS, *ASSISTANT_BLOCKS}))
RESULT_BLOCKS = ("document", "image", "search_result", "text")

FIELDS: Mapping[str, frozenset[str]] = {
    "text": frozenset({"type", "text", "cache_control", "citations"}),
    "image": frozenset({"type", "source", "cache_control"}),
    "document": frozenset({"type", "source", "cache_control", "citations", "context", "title"}),
    "search_result": frozenset({"type", "source", "title", "content", "cache_control", "citations"}),
    "tool_use": frozenset({"type", "id", "name", "input", "cache_control", "caller"}),
    "tool_result": frozenset({"type", "tool_use_id", "content", "is_error", "cache_control"}),
    "thinking": frozenset({"type", "thinking", "signature"}),
    "redacted_thinking": frozenset({"type", "data"}),
}
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("source",),
    "document": ("source",),
    "search_result": ("source", "title", "content"),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("tool_use_id",),
    "thinking": ("signature", "thinking"),
    "redacted_thinking": ("data",),
}
STRINGS = ("text", "tool_use_id", "id", "name", "signature", "thinking", "data", "title")


def refuse_extra(value: Mapping[str, Any], allowed: frozenset[str], path: str) -> None:
    """Refuse the first field that is not in `allowed`; `path` is empty at the top level."""
    if value.keys() <= allowed:
        return
    extra = next(key for key in value if key not in allowed)
    raise ApiError(f"{path}.{extra}: Extra inputs are not permitted".lstrip("."))


def check_cache_control(value: Any, path: str) -> None:
    """Refuse a marker that is not `{"type": "ephemeral", "ttl": "5m" | "1h"}`; null is no marker."""
    if value is None:
        return
    if not isinstance(value, dict):
        raise ApiError(f"{path}.cache_control: Input should be a valid dictionary")
    if value.get("type") != "ephemeral":
        if "type" not in value:
            raise ApiError(f"{path}.cache_control.type: Field required")
        raise ApiError(f"{path}.cache_control.type: Input should be 'ephemeral'")
    refuse_extra(value, frozenset({"type", "ttl"}), f"{path}.cache_control.ephemeral")
    if value.get("ttl", "5m") not in LIFETIMES:
        raise ApiError(f"{path}.cache_control.ephemeral.ttl: Input should be '5m' or '1h'")


def check_text(text: Any, path: str, *, marked: bool = False, place: str = "messages") -> None:
    """Refuse text that is empty or blank. `marked`: the block carries cache_control."""
    if not isinstance(text, str):
        raise ApiError(f"{path}.text.text: Input should be a valid string")
    if not text:
        if marked:
            raise ApiError(f"{path}.text: cache_control cannot be set for empty text blocks")
        raise ApiError(f"{place}: text content blocks must be non-empty")
    if text.isspace():
        raise ApiError(f"{place}: text content blocks must contain non-whitespace text")


def check_block(block: Any, path: str, role: str, *, strict_citations: bool) -> None:
    """Check one block of a message. `path` is `messages.N.content.M`; `role` user or assistant.

    `strict_citations`: under version 2026-10-21 a user's text may carry no citations.
    """
    kind = _tag(block, path, ALL_BLOCKS)
    if kind == "text":
        _check_fields(block, path, kind)
        check_text(block["text"], path, marked=bool(block.get("cache_control")))
        if strict_citations and role == "user" and block.get("citations"):
            raise ApiError(f"{path}.text.citations: Extra inputs are not permitted")
    elif kind == "tool_use":
        _refuse_place(kind, role, "assistant", path)
        _check_fields(block, path, kind)
        _check_id(block["id"], f"{path}.tool_use.id")
        if not isinstance(block["input"], dict):
            raise ApiError(f"{path}.tool_use.input: Input should be a valid dictionary")
    elif kind == "tool_result":
        _refuse_place(kind, role, "user", path)
        _check_fields(block, path, kind)
        _check_id(block["tool_use_id"], f"{path}.tool_result.tool_use_id")
        if not isinstance(block.get("is_error") or False, bool):
            raise ApiError(f"{path}.tool_result.is_error: Input should be a valid boolean")
        _check_result_content(block.get("content"), path)
    elif kind in ("thinking", "redacted_thinking"):
        _refuse_place(kind, role, "assistant", path)
        _check_fields(block, path, kind)
    else:
        _refuse_place(kind, role, "user", path)
        _check_fields(block, path, kind)
        _check_source(block, path, kind)
    if block.get("cache_control") is not None:
        check_cache_control(block["cache_control"], path)


def _tag(block: Any, path: str, allowed: tuple[str, ...]) -> str:
    if not isinstance(block, dict):
        raise ApiError(f"{path}: Input should be a valid dictionary")
    kind = block.get("type")
    if kind in allowed:
        return str(kind)
    if kind is None:
        raise ApiError(f"{path}.type: Field required")
    tags = ", ".join(f"'{tag}'" for tag in allowed)
    raise ApiError(f"{path}: Input tag '{kind}' found using 'type' does not match any of the expected tags: {tags}")


def _check_fields(block: dict[str, Any], path: str, kind: str) -> None:
    for name in REQUIRED[kind]:
        if name not in block:
            raise ApiError(f"{path}.{kind}.{name}: Field required")
    refuse_extra(block, FIELDS[kind], f"{path}.{kind}")
    for name in REQUIRED[kind]:
        if name in STRINGS and not isinstance(block[name], str):
            raise ApiError(f"{path}.{kind}.{name}: Input should be a valid string")


def _check_id(value: str, path: str) -> None:
    if not ID_PATTERN.match(value):
        raise ApiError(f"{path}: String should match pattern '^[a-zA-Z0-9_-]+$'")


def _refuse_place(kind: str, role: str, wanted: str, path: str) -> None:
    if role != wanted:
        message_path = path.partition(".content")[0]
        raise ApiError(f"{message_path}: `{kind}` blocks can only be in `{wanted}` messages")


def _check_result_content(content: Any, path: str) -> None:
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise ApiError(f"{path}.tool_result.content: Input should be a valid string")
    for number, part in enumerate(content):
        part_path = f"{path}.tool_result.content.{number}"
        kind = _tag(part, part_path, RESULT_BLOCKS)
        _check_fields(part, part_path, kind)
        if kind == "text":
            check_text(part["text"], part_path, marked=bool(part.get("cache_control")))
        else:
            _check_source(part, part_path, kind)
        check_cache_control(part.get("cache_control"), part_path)


def _check_source(block: dict[str, Any], path: str, kind: str) -> None:
    if kind == "search_result":
        if not isinstance(block["content"], list):
            raise ApiError(f"{path}.search_result.content: Input should be a valid list")
        return
    source = block["source"]
    if not isinstance(source, dict):
        raise ApiError(f"{path}.{kind}.source: Input should be a valid dictionary")
    needed = {"base64": ("media_type", "data"), "url": ("url",), "text": ("media_type", "data")}
    if source.get("type") not in needed or (kind == "image" and source["type"] == "text"):
        raise ApiError(
            f"{path}.{kind}.source: Input tag '{source.get('type')}' found using 'type' does not match any "
            f"of the "
            "expected tags: 'base64', 'url'"
        )
    for name in needed[source["type"]]:
        if name not in source:
            raise ApiError(f"{path}.{kind}.source.{source['type']}.{name}: Field required")
