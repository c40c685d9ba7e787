"""The models that the emulator serves, and what each of them supports."""

from dataclasses import asdict, dataclass, fields
from typing import Any

DEFAULT_WINDOW_TOKENS = 200_000
DEFAULT_OUTPUT_TOKENS = 16_384
DEFAULT_CACHE_MINIMUM_TOKENS = 512

CREATED_AT = "2026-09-01T00:00:00Z"


@dataclass(frozen=True)
class EmulatedModel:
    """One model: its wire id, limits in tokens and behaviour.

    `thinking_bound` means that a thinking block is valid only behind the unchanged prefix it was made behind.
    `manual_thinking` takes thinking with a budget of tokens; `strips_thinking`: once a person has spoken again, earlier
    thinking is ignored, and costs nothing. Older models have both, none of those that are served without being asked.
    `thinking_display` is what an answer shows of its thinking when the request does not say: summarized or
    omitted.
    """

    id: str
    display_name: str = ""
    context_window_tokens: int = DEFAULT_WINDOW_TOKENS
    max_output_tokens: int = DEFAULT_OUTPUT_TOKENS
    cache_minimum_tokens: int = DEFAULT_CACHE_MINIMUM_TOKENS
    adaptive_thinking: bool = False
    manual_thinking: bool = False
    strips_thinking: bool = False
    thinking_bound: bool = True
    thinking_display: str = "summarized"

    def describe(self) -> dict[str, Any]:
        """The model as `GET /v1/models/{id}` shows it."""
        no, yes = {"supported": False}, {"supported": True}
        adaptive, manual = {"supported": self.adaptive_thinking}, {"supported": self.manual_thinking}
        thinking = {"supported": self.adaptive_thinking or self.manual_thinking}
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.display_name or self.id,
            "created_at": CREATED_AT,
            "deprecated_at": None,
            "retires_at": None,
            "lifecycle": "active",
            "line": None,
            "max_input_tokens": self.context_window_tokens,
            "max_tokens": self.max_output_tokens,
            "capabilities": {
                "batch": no,
                "citations": no,
                "code_execution": no,
                "context_management": no,
                "effort": {**yes, "low": yes, "medium": yes, "high": yes, "xhigh": yes, "max": yes},
                "image_input": yes,
                "pdf_input": no,
                "server_tools": no,
                "structured_outputs": yes,
                "thinking": {**thinking, "types": {"adaptive": adaptive, "enabled": manual}},
            },
        }

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "EmulatedModel":
        """Build one from a control request. Raises ValueError that names an unknown or missing key."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"unknown model settings: {', '.join(sorted(unknown))}")
        if not values.get("id"):
            raise ValueError("a model needs an id")
        return cls(**values)


def built_in_models() -> dict[str, EmulatedModel]:
    """The three models of a fresh emulator, by wire id."""
    models = (
        EmulatedModel("emulator-main", "Emulator main", adaptive_thinking=True),
        EmulatedModel("emulator-light", "Emulator light", adaptive_thinking=False),
        EmulatedModel("emulator-light-all", "Emulator light, all categories", adaptive_thinking=True),
    )
    return {model.id: model for model in models}
