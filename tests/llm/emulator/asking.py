"""Short ways to ask the emulator through the SDK."""

from typing import Any

import anthropic
import pytest

MAIN = "emulator-main"
TOOLS = [
    {"name": "clock", "description": "The time.", "input_schema": {"type": "object", "properties": {}}},
    {
        "name": "lookup",
        "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
]
ADAPTIVE = {"type": "adaptive"}


def user(*content: Any) -> dict[str, Any]:
    """A user message of strings and blocks."""
    blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    return {"role": "user", "content": blocks}


def assistant(*content: Any) -> dict[str, Any]:
    return {**user(*content), "role": "assistant"}


def call(call_id: str, name: str = "clock", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(call_id: str, text: str = "noon") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def marked(block: dict[str, Any] | str, ttl: str = "5m") -> dict[str, Any]:
    """The block with a cache marker."""
    whole = {"type": "text", "text": block} if isinstance(block, str) else block
    return {**whole, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def ask(client: anthropic.Anthropic, *messages: Any, **parameters: Any) -> anthropic.types.Message:
    """One call without a stream; a string is a user message."""
    whole = [user(message) if isinstance(message, str) else message for message in messages]
    return client.messages.create(**{"model": MAIN, "max_tokens": 500, "messages": whole, **parameters})


def refusal(client: anthropic.Anthropic, *messages: Any, **parameters: Any) -> str:
    """The message of the 400 that this call gets."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(client, *messages, **parameters)
    body = caught.value.response.json()
    assert body["request_id"] == caught.value.request_id
    assert body["error"]["type"] == "invalid_request_error"
    return str(body["error"]["message"])
