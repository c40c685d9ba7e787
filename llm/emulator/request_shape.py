"""One request to the Messages API, checked: fields, versions, limits, thinking, then turns and tools."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llm.emulator.block_shape import check_cache_control, check_text, refuse_extra
from llm.emulator.errors import ApiError
from llm.emulator.manual_thinking import check_budget, check_request
from llm.emulator.models import EmulatedModel
from llm.emulator.tool_shape import check_tool_choice, check_tools
from llm.emulator.turns import Turn, read_turns

BODY_MAX_BYTES = 32 * 1024 * 1024
VERSIONS = ("2023-06-01", "2026-10-21")
BINDING_BETA = "thinking-binding-controls-2026-08-01"
BETAS = frozenset(
    {
        BINDING_BETA,
        "model-context-window-exceeded-2025-08-26",
        "interleaved-thinking-2025-05-14",
        "prompt-caching-2024-07-31",
        "extended-cache-ttl-2025-04-11",
        "token-counting-2024-11-01",
        "fine-grained-tool-streaming-2025-05-14",
        "cache-diagnosis-2026-04-07",
    }
)
SAMPLING_FIELDS = frozenset({"temperature", "top_p", "top_k"})
COUNT_FIELDS = frozenset(
    {
        "messages",
        "model",
        "cache_control",
        "output_config",
        "speed",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)
FIELDS = COUNT_FIELDS | {
    "container",
    "diagnostics",
    "inference_geo",
    "max_tokens",
    "metadata",
    "service_tier",
    "stop_sequences",
    "stream",
}
EFFORTS = ("low", "medium", "high", "xhigh", "max")
DEFAULT_EFFORT = "high"


@dataclass
class MessagesRequest:
    """A request that passed every check. `max_tokens` is 0 for counting and for warming a cache."""

    model: EmulatedModel
    max_tokens: int
    stream: bool
    system: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    turns: list[Turn]
    tool_choice: dict[str, Any]
    thinking: bool
    thinking_display: str
    drop_mismatched_thinking: bool
    effort: str
    output_format: dict[str, Any] | None
    stop_sequences: list[str]
    cache_control: dict[str, Any] | None

    def last_user_text(self) -> str:
        """All text of the last turn, results of tools included."""
        return "\n".join(block_text(block) for _, _, block in self.turns[-1].blocks)

    def any_user_text_contains(self, wanted: str) -> bool:
        """Whether some text of a user turn holds `wanted`, newest first."""
        return any(
            wanted in block_text(block)
            for turn in reversed(self.turns)
            if turn.role == "user"
            for _, _, block in turn.blocks
        )


def block_text(block: Mapping[str, Any]) -> str:
    """What a block says in words; of a tool result, its text parts. Empty for everything else."""
    if block["type"] == "text":
        return str(block["text"])
    if block["type"] != "tool_result":
        return ""
    content = block.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part["text"] for part in content if part["type"] == "text")


def check_headers(headers: Mapping[str, str]) -> tuple[str, str, frozenset[str]]:
    """Check authentication, version and betas. Returns (API key, version, betas).

    Both `x-api-key` and `Authorization: Bearer` are accepted, the first one winning. The key `invalid` is
    refused.
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    key = headers.get("x-api-key") or (token.strip() if scheme.lower() == "bearer" else "")
    if not key:
        raise ApiError("x-api-key header is required", 401)
    if key == "invalid":
        raise ApiError("invalid x-api-key", 401)
    version = headers.get("anthropic-version")
    if not version:
        raise ApiError("anthropic-version: header is required")
    if version not in VERSIONS:
        raise ApiError(f'anthropic-version: "{version}" is not a valid version')
    betas = frozenset(part.strip() for part in headers.get("anthropic-beta", "").split(",") if part.strip())
    unknown = sorted(betas - BETAS)
    if unknown:
        values = ", ".join(f"`{value}`" for value in unknown)
        raise ApiError(f"Unexpected value(s) {values} for the `anthropic-beta` header.")
    return key, version, betas


def parse_body(raw: bytes) -> dict[str, Any]:
    """The JSON object of a request. Refuses NaN, half a surrogate pair and anything that is no object."""
    try:
        body = json.loads(raw, parse_constant=_refuse_constant)
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ApiError("The request body is not valid JSON: no low surrogate in string") from error
    except (ValueError, RecursionError) as error:
        raise ApiError(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise ApiError("Input should be a valid dictionary")
    return body


def _refuse_constant(name: str) -> float:
    raise ValueError(f"unexpected {name}")


def read_request(
    body: dict[str, Any],
    models: Mapping[str, EmulatedModel],
    version: str,
    betas: frozenset[str],
    *,
    counting: bool = False,
    leading_assistant: bool = False,
) -> MessagesRequest:
    """Check `body` and return it in one form. `counting`: for count_tokens, which takes fewer fields.

    Raises ApiError 400 in the API's words, 404 for an unknown model.
    """
    allowed = COUNT_FIELDS if counting else FIELDS
    if version == VERSIONS[0] and not counting:
        allowed |= SAMPLING_FIELDS
    for name in ("model", "messages") if counting else ("model", "messages", "max_tokens"):
        if name not in body:
            raise ApiError(f"{name}: Field required")
    refuse_extra(body, allowed, "")
    model_id = body["model"]
    if not isinstance(model_id, str):
        raise ApiError("model: Input should be a valid string")
    stream = body.get("stream") or False
    if not isinstance(stream, bool):
        raise ApiError("stream: Input should be a valid boolean")
    if model_id not in models:
        raise ApiError(f"model: {model_id}", 404)
    model = models[model_id]
    max_tokens = 0 if counting else _check_max_tokens(body["max_tokens"], model)
    check_cache_control(body.get("cache_control"), "")
    tools = check_tools(body.get("tools"))
    system = _read_system(body.get("system"))
    turns = read_turns(
        body["messages"],
        strict_citations=version != VERSIONS[0],
        leading_assistant=leading_assistant,
    )
    choice = check_tool_choice(body.get("tool_choice"), tools)
    if not tools and any(block["type"] in ("tool_use", "tool_result") for turn in turns for _, _, block in turn.blocks):
        raise ApiError("Requests which include `tool_use` or `tool_result` blocks must define tools.")
    thinking, display, drop = _read_thinking(body.get("thinking"), model, betas)
    if thinking and body["thinking"]["type"] == "enabled":
        check_request(body["thinking"]["budget_tokens"], None if counting else max_tokens, choice["type"], turns)
    effort, output_format = _read_output_config(body.get("output_config"))
    request = MessagesRequest(
        model=model,
        max_tokens=max_tokens,
        stream=stream,
        system=system,
        tools=tools,
        turns=turns,
        tool_choice=choice,
        thinking=thinking,
        thinking_display=display,
        drop_mismatched_thinking=drop,
        effort=effort,
        output_format=output_format,
        stop_sequences=_read_stop_sequences(body.get("stop_sequences")),
        cache_control=body.get("cache_control"),
    )
    if max_tokens == 0 and not counting:
        _check_warming(request)
    return request


def _check_max_tokens(value: Any, model: EmulatedModel) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ApiError("max_tokens: Input should be a valid integer")
    if value < 0:
        raise ApiError("max_tokens: Input should be greater than or equal to 0")
    if value > model.max_output_tokens:
        raise ApiError(
            f"max_tokens: {value} > {model.max_output_tokens}, which is the maximum allowed number of output "
            f"tokens "
            f"for {model.id}"
        )
    return value


def _check_warming(request: MessagesRequest) -> None:
    """max_tokens 0 warms the cache, and only that."""
    forced = request.tool_choice["type"] in ("any", "tool")
    if request.stream or request.thinking or request.output_format or forced:
        raise ApiError(
            "max_tokens: 0 is only supported without `stream`, `thinking`, `output_config.format` and a "
            "`tool_choice` "
            "that forces tool use"
        )


def _read_system(system: Any) -> list[dict[str, Any]]:
    if system is None or system == "":
        return []
    if isinstance(system, str):
        check_text(system, "system", place="system")
        return [{"type": "text", "text": system}]
    if not isinstance(system, list):
        raise ApiError("system: Input should be a valid string")
    for number, block in enumerate(system):
        path = f"system.{number}"
        if not isinstance(block, dict):
            raise ApiError(f"{path}: Input should be a valid dictionary")
        if block.get("type") != "text":
            raise ApiError(f"{path}.type: Input should be 'text'")
        if "text" not in block:
            raise ApiError(f"{path}.text: Field required")
        refuse_extra(block, frozenset({"type", "text", "cache_control", "citations"}), path)
        check_text(block["text"], path, marked=bool(block.get("cache_control")), place="system")
        check_cache_control(block.get("cache_control"), path)
    return system


def _read_thinking(thinking: Any, model: EmulatedModel, betas: frozenset[str]) -> tuple[bool, str, bool]:
    """(enabled, display, whether mismatching blocks are dropped)."""
    if thinking is None:
        return False, model.thinking_display, False
    if not isinstance(thinking, dict):
        raise ApiError("thinking: Input should be a valid dictionary")
    kind = thinking.get("type")
    if kind is None:
        raise ApiError("thinking.type: Field required")
    if kind not in ("adaptive", "disabled", "enabled"):
        raise ApiError(
            f"thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'adaptive', 'disabled', 'enabled'"
        )
    if kind == "enabled":
        check_budget(thinking, model)
    if kind == "adaptive" and not model.adaptive_thinking:
        raise ApiError("adaptive thinking is not supported on this model")
    allowed = {"type"} if kind == "disabled" else {"type", "display"}
    if kind == "enabled":
        allowed.add("budget_tokens")
    if BINDING_BETA in betas:
        allowed.add("block_binding")
    refuse_extra(thinking, frozenset(allowed), f"thinking.{kind}")
    display = thinking.get("display") or model.thinking_display
    if display not in ("summarized", "omitted"):
        raise ApiError(f"thinking.{kind}.display: Input should be 'summarized' or 'omitted'")
    behavior = (thinking.get("block_binding") or {}).get("prefix_mismatch_behavior", "error")
    if behavior not in ("error", "drop_block"):
        raise ApiError("thinking.block_binding.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'")
    return kind != "disabled", display, behavior == "drop_block"


def _read_output_config(config: Any) -> tuple[str, dict[str, Any] | None]:
    if config is None:
        return DEFAULT_EFFORT, None
    if not isinstance(config, dict):
        raise ApiError("output_config: Input should be a valid dictionary")
    refuse_extra(config, frozenset({"effort", "format"}), "output_config")
    effort = config.get("effort") or DEFAULT_EFFORT
    if effort not in EFFORTS:
        raise ApiError("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")
    output_format = config.get("format")
    if output_format is not None and (
        not isinstance(output_format, dict)
        or output_format.get("type") != "json_schema"
        or not isinstance(output_format.get("schema"), dict)
    ):
        raise ApiError("output_config.format: Input should be a valid json_schema format")
    return effort, output_format


def _read_stop_sequences(sequences: Any) -> list[str]:
    if sequences is None:
        return []
    if not isinstance(sequences, list) or not all(isinstance(sequence, str) for sequence in sequences):
        raise ApiError("stop_sequences: Input should be a valid list")
    if any(not sequence.strip() for sequence in sequences):
        raise ApiError("stop_sequences: each stop sequence must contain non-whitespace")
    return sequences
