"""Faults that a test, or in demo mode a user, switches on by request."""

import json
import re
from dataclasses import dataclass, fields
from typing import Any

from llm.emulator.errors import ERROR_MESSAGES, ERROR_TYPES, error_body

BEFORE_ANSWER = ("status", "hold")
IN_ANSWER = ("error_event", "stall", "drop", "end_without_stop", "cut_tool_json")
KINDS = (*BEFORE_ANSWER, *IN_ANSWER)

# What a user may write in demo mode: `fault:529`, `fault:drop`, `fault:context_full` ...
MAGIC_WORD = re.compile(r"\bfault:(\d{3}|[a-z_]+)")
CONTEXT_FULL = "prompt is too long: 200251 tokens > 200000 maximum"


@dataclass(frozen=True)
class Fault:
    """One fault.

    status: answer with `status`, `headers` and `body` (an object, or text of any gateway); without a body the
    usual one for that status with `error_type` and `message`. hold: wait before the first byte until `name`
    is released. error_event: an `error` event after `after_deltas` deltas. stall: silence there for
    `seconds`, or until released. drop: the connection closes there. end_without_stop: the stream ends cleanly
    there, without message_stop. cut_tool_json: the first tool call ends within its JSON, stop reason
    max_tokens.
    """

    kind: str
    after_deltas: int = 1
    seconds: float | None = None
    name: str = "hold"
    status: int = 500
    error_type: str | None = None
    message: str | None = None
    headers: dict[str, str] | None = None
    body: Any = None

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> "Fault":
        """Raises ValueError that says what is wrong."""
        unknown = set(said) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown fault settings: {', '.join(sorted(unknown))}")
        if said.get("kind") not in KINDS:
            raise ValueError(f"a fault's kind is one of {', '.join(KINDS)}")
        return cls(**said)

    def error(self, default_status: int) -> tuple[str, str]:
        """(error type, message) of this fault."""
        error_type = self.error_type or ERROR_TYPES.get(default_status, "api_error")
        return error_type, self.message or ERROR_MESSAGES.get(error_type, error_type)

    def response(self, request_id: str) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) of a status fault."""
        headers = {"content-type": "application/json"}
        if self.status == 429 and self.headers is None:
            headers["retry-after"] = "1"
        headers.update(self.headers or {})
        if isinstance(self.body, str):
            return self.status, headers, self.body.encode()
        if self.body is not None:
            return self.status, headers, json.dumps(self.body, ensure_ascii=False).encode()
        error_type, message = self.error(self.status)
        return self.status, headers, json.dumps(error_body(error_type, message, request_id)).encode()


def fault_from_words(text: str) -> Fault | None:
    """The fault that a user's text asks for by magic word, or None."""
    found = MAGIC_WORD.search(text)
    if not found:
        return None
    word = found.group(1)
    if word.isdigit():
        return Fault("status", status=int(word)) if 400 <= int(word) <= 599 else None
    if word == "context_full":
        return Fault("status", status=400, message=CONTEXT_FULL)
    if word == "stall":
        return Fault("stall", seconds=None, after_deltas=2)
    return Fault(word, after_deltas=2) if word in IN_ANSWER else None
