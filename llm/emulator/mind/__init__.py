"""The rule-based model behind the demo: deterministic, and honest about being no language model."""

from typing import Any

from llm.emulator.request_shape import MessagesRequest

INTRODUCTION = "I am MaxClaw's built-in rule-based model, not a language model."


def answer(request: MessagesRequest) -> list[dict[str, Any] | str]:
    """The blocks of an answer to `request`, in the form that scripts use."""
    return [INTRODUCTION]
