"""The table that tells errors apart: patterns over their texts, drawn from real gateways, in order."""

import re
from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """What can be done: retry; have the key or account mended; compact; ask for less output; nothing known."""

    TRANSIENT = "transient"
    CREDENTIAL = "credential"
    CONTEXT_FULL = "context_full"
    OUTPUT_CAP = "output_cap"
    UNKNOWN = "unknown"


_N = r"\d[\d,]*"
_ANY = re.IGNORECASE | re.DOTALL


@dataclass(frozen=True)
class Rule:
    """A row of the table: a pattern over the texts of an error, and what a match means.

    The groups input, tools, output, window and limit, where the pattern has them, are the error's figures.
    """

    name: str
    kind: ErrorKind
    pattern: re.Pattern[str]

    @classmethod
    def of(cls, name: str, kind: ErrorKind, pattern: str) -> "Rule":
        return cls(name, kind, re.compile(pattern.replace("#", _N), _ANY))


TRANSIENT_TEXT = re.compile(
    r"rate limit|too many requests|^(Throttling error|Service unavailable):|ThrottlingException"
    r"|Too many tokens, please wait|quota exceeded|resource[\s_]exhausted|overloaded",
    re.IGNORECASE | re.MULTILINE,
)
CREDENTIAL_TEXT = re.compile(
    r"enforced_spend_limit_reached|reached your (specified )?(workspace )?API usage limits"
    r"|credit balance is too low|insufficient_quota|insufficient credits|payment required"
    r"|Unable to locate credentials|security token included in the request is invalid|AccessDeniedException"
    r"|API key not valid|Incorrect API key|invalid api token|invalid x-api-key",
    re.IGNORECASE,
)
THINKING_TEXT = re.compile(
    r"Invalid `?signature`? in `?thinking`? block|blocks in the latest assistant message cannot be modified"
    r"|Expected `?thinking`? or `?redacted_thinking`?, but found|block is bound to a different conversation"
    r"|assistant message contains any thinking blocks|must start with a thinking block"
    r"|messages\.\d+\.content\.\d+[^\n]*\bthinking\b",
    re.IGNORECASE,
)
OVERLOADED_TEXT = re.compile(r"overloaded", re.IGNORECASE)
RATE_TEXT = re.compile(r"rate.?limit|too many (requests|tokens)|throttl|quota|exhausted", re.IGNORECASE)

TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
CREDENTIAL_STATUSES = frozenset({401, 402, 403})
TRANSIENT_TYPES = frozenset({"overloaded_error", "api_error", "timeout_error", "rate_limit_error"})
CREDENTIAL_TYPES = frozenset({"authentication_error", "permission_error", "billing_error"})

_CAP, _FULL, _NONE = ErrorKind.OUTPUT_CAP, ErrorKind.CONTEXT_FULL, ErrorKind.UNKNOWN

# Tried in this order once neither a transient error nor a credential is the matter.
TABLE: tuple[Rule, ...] = (
    Rule.of(
        "output_limit",
        _CAP,
        r"max_tokens: (?P<output>#) > (?P<limit>#), which is the maximum allowed number of output tokens",
    ),
    Rule.of(
        "output_beside_input",
        _CAP,
        r"max_tokens: (?P<output>#) > context_window: (?P<window>#) - input_tokens: (?P<input>#)",
    ),
    Rule.of(
        "openai_output_limit",
        _CAP,
        r"max(?:_completion)?_tokens is too large: (?P<output>#)\. This model supports at most (?P<limit>#)",
    ),
    Rule.of("string_length", _NONE, r"string_above_max_length"),
    Rule.of("invalid_user", _NONE, r"Invalid 'user'"),
    Rule.of("unsupported_parameter", _NONE, r"Unsupported parameter: 'max_tokens'"),
    Rule.of(
        "image",
        _NONE,
        r"image_dimensions_too_large|image[^\n]{0,60}(dimension|exceeds|too large|too big)"
        r"|(dimension|size)[^\n]{0,40} of (the |an? )?image",
    ),
    Rule.of("anthropic", _FULL, r"prompt is too long: (?P<input>#) tokens > (?P<window>#) maximum"),
    Rule.of("anthropic", _FULL, r"prompt is too long"),
    Rule.of(
        "anthropic_older",
        _FULL,
        r"input length and `?max_tokens`? exceed context limit: (?P<input>#) \+ (?P<output>#) > (?P<window>#)",
    ),
    Rule.of(
        "anthropic_413",
        _FULL,
        r"request_too_large|request exceeds the maximum size|Request size exceeds model context window"
        r"|request entity too large",
    ),
    Rule.of("vertex", _FULL, r"Request payload size exceeds"),
    Rule.of(
        "bedrock",
        _FULL,
        r"Input is too long for requested model|too many (total text bytes|input tokens)"
        r"|expected maxLength: \d+|prompt: length: 1\.\.",
    ),
    Rule.of(
        "bedrock_mantle",
        _FULL,
        r"prompt tokens \((?P<input>#)\) exceed (customer )?model maximum \((?P<window>#)\)",
    ),
    Rule.of(
        "openrouter",
        _FULL,
        r"maximum context length is (?P<window>#) tokens\. However, you requested about # tokens "
        r"\((?P<input>#) of text input(?:, (?P<tools>#) of tool input)?, (?P<output>#) in the output\)",
    ),
    Rule.of(
        "vllm",
        _FULL,
        r"maximum context length is (?P<window>#) tokens\. However, you requested (?P<output>#) output tokens "
        r"and your prompt contains (?:at least )?(?P<input>#) input tokens",
    ),
    Rule.of(
        "vllm_older",
        _FULL,
        r"'max_tokens' or 'max_completion_tokens' is too large: (?P<output>#)\. This model's maximum context "
        r"length is (?P<window>#) tokens and your request has (?P<input>#) input tokens",
    ),
    Rule.of(
        "openai",
        _FULL,
        r"maximum context length is (?P<window>#) tokens\. However, you requested # tokens "
        r"\((?P<input>#) in (?:the|your) (?:messages|prompt)[^)]*?[,;] (?P<output>#) (?:in|for) the completion",
    ),
    Rule.of(
        "openai",
        _FULL,
        r"maximum context length is (?P<window>#) tokens(?:[^\n]{0,60}resulted in (?P<input>#) tokens)?",
    ),
    Rule.of("openai_responses", _FULL, r"exceeds the context window|Input tokens exceed the configured limit"),
    Rule.of("openai_code", _FULL, r"context_length_exceeded"),
    Rule.of(
        "litellm",
        _FULL,
        r"ContextWindowExceededError|exceed context limit|is longer than the model's context length",
    ),
    Rule.of(
        "xai",
        _FULL,
        r"maximum prompt length is (?P<window>#) but the request contains (?P<input>#)",
    ),
    Rule.of(
        "gemini",
        _FULL,
        r"input token count (?:\((?P<input>#)\) )?.{0,40}?exceeds the maximum number of tokens allowed"
        r"(?: \((?P<window>#)\))?",
    ),
    Rule.of("groq", _FULL, r"Please reduce the length of the messages or completion"),
    Rule.of(
        "github_copilot",
        _FULL,
        r"prompt token count of (?P<input>#) exceeds the limit of (?P<window>#)"
        r"|model_max_prompt_tokens_exceeded",
    ),
    Rule.of(
        "mistral",
        _FULL,
        r"(?:contains (?P<input>#) tokens[^\n]{0,80}?)?too large for model with (?P<window>#) "
        r"maximum context length",
    ),
    Rule.of("minimax", _FULL, r"context window exceeds limit"),
    Rule.of("kimi", _FULL, r"exceeded model token limit(?:: (?P<window>#))?"),
    Rule.of("dashscope", _FULL, r"Range of input length should be \[1, (?P<window>#)\]"),
    Rule.of("zai", _FULL, r'"code"\s*:\s*"?1261\b|Prompt (exceeds max length|too long)'),
    Rule.of("cerebras", _FULL, r"Current length is (?P<input>#) while limit is (?P<window>#)"),
    Rule.of(
        "together_tgi",
        _FULL,
        r"`inputs` tokens \+ `max_new_tokens` must be <= (?P<window>#)"
        r"(?:\. Given: (?P<input>#) `inputs` tokens and (?P<output>#) `max_new_tokens`)?",
    ),
    Rule.of("tgi", _FULL, r"length limit exceeded|maximum input length"),
    Rule.of(
        "cohere",
        _FULL,
        r"too many tokens|Prompt has too many tokens|longer than the model's maximum context length"
        r"|Input text length should not exceed",
    ),
    Rule.of(
        "cloudflare",
        _FULL,
        r"exceeded this model context window limit"
        r"|Requested token count exceeds the model's maximum context length",
    ),
    Rule.of("llama_cpp", _FULL, r"exceed_context_size_error|exceeds the available context size"),
    Rule.of("ollama", _FULL, r"prompt too long; exceeded (max )?context length"),
    Rule.of("lm_studio", _FULL, r"tokens to keep from the initial prompt is greater than the context length"),
    Rule.of(
        "generic",
        _FULL,
        r"context[_ ]length[_ ]exceeded|token limit exceeded|maximum context length|exceeds? (the )?context",
    ),
)
LLAMA_INPUT = re.compile(r'"n_prompt_tokens"\s*:\s*(\d+)')
LLAMA_WINDOW = re.compile(r'"n_ctx"\s*:\s*(\d+)')
