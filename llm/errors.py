"""What went wrong with a request, told from status, error type and body by one table.

Gateways rewrap each other's errors, and some answer a full context with the words of an output limit. The
order of the table matters: what is transient or about credentials is settled before any pattern about lengths
is tried, and figures in the body decide between a full context and an output limit that only has to be
lowered.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.utils.translation import gettext as _

DETAIL_MAX_CHARS = 2_000
# With less room than this beside the input, a lower output limit is no help: the context is full.
ANSWER_RESERVE_TOKENS = 1_024
NESTING_LIMIT = 6


class ErrorKind(StrEnum):
    """What can be done: retry; have the key or account mended; compact; ask for less output; nothing known."""

    TRANSIENT = "transient"
    CREDENTIAL = "credential"
    CONTEXT_FULL = "context_full"
    OUTPUT_CAP = "output_cap"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Figures:
    """Tokens that an error's body names: the prompt's, those asked for, the window, the greatest output."""

    input: int | None = None
    output: int | None = None
    window: int | None = None
    output_limit: int | None = None


@dataclass(frozen=True)
class Classified:
    """The verdict on one error. `rule` is the name of the row that decided."""

    kind: ErrorKind
    rule: str
    figures: Figures | None = None
    is_thinking_error: bool = False


class ModelError(Exception):
    """A request that failed.

    `sentence` is for the user; `detail` is for the console, without keys and at most DETAIL_MAX_CHARS long.
    Neither ever enters a prompt. `retry_after` is in seconds. A thinking error is a 400 about thinking blocks
    that went back: dropping them once mends it.
    """

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        rule: str = "",
        status: int | None = None,
        request_id: str = "",
        retry_after: float | None = None,
        figures: Figures | None = None,
        is_thinking_error: bool = False,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = redact(detail)[:DETAIL_MAX_CHARS]
        self.rule = rule
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.figures = figures
        self.is_thinking_error = is_thinking_error

    @property
    def sentence(self) -> str:
        """What the user reads, in the language that is active when it is asked for."""
        return sentence_for(self.kind, self.rule)


def sentence_for(kind: ErrorKind, rule: str = "") -> str:
    """One sentence that says what happened and what helps."""
    match kind, rule:
        case ErrorKind.TRANSIENT, "rate_limit":
            return _("The model is receiving too many requests just now. Try again in a minute.")
        case ErrorKind.TRANSIENT, "overloaded":
            return _("The model is overloaded just now. Try again in a minute.")
        case ErrorKind.TRANSIENT, "stall":
            return _("The model stopped sending in the middle. Try again.")
        case ErrorKind.TRANSIENT, "truncated" | "dropped":
            return _("The connection to the model broke before its answer was complete. Try again.")
        case ErrorKind.TRANSIENT, "unreachable":
            return _("The model's server cannot be reached just now. Try again in a minute.")
        case ErrorKind.TRANSIENT, _rule:
            return _("The model's server has a problem of its own just now. Try again in a minute.")
        case ErrorKind.CREDENTIAL, _rule:
            return _(
                "The model's server refused this server's key, or its account has no credit left. "
                "Whoever runs this server has to mend that."
            )
        case ErrorKind.CONTEXT_FULL, _rule:
            return _(
                "This conversation no longer fits into the model's context. "
                "Rewind to an earlier message, or go on in a new conversation."
            )
        case ErrorKind.OUTPUT_CAP, _rule:
            return _("The model cannot write an answer of the length that was asked for. Ask for a shorter one.")
        case _kind, "thinking":
            return _("The model refused its own earlier thinking. Try again without it.")
        case _kind, "model_not_found":
            return _("The model's server does not know this model. Pick another one.")
    return _("The model's server refused the request. Try again, or pick another model.")


# What may stand in an error's text and must not be stored: keys of any provider, tokens, passwords in
# addresses.
_SECRETS = re.compile(
    r"(?i)\b(sk-[\w-]{6,}|(?:bearer|basic)\s+[\w.~+/=-]{6,}|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|gsk_\w{10,}"
    r"|xai-\w{10,}|hf_\w{10,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?:(?<=api-key: )|(?<=api_key=)|(?<=apikey=)|(?<=key=))[\w.~+/=-]{6,}"
)


def redact(text: str) -> str:
    """`text` with everything that looks like a key replaced."""
    return _SECRETS.sub("[redacted]", text)


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


_TRANSIENT_TEXT = re.compile(
    r"rate limit|too many requests|^(Throttling error|Service unavailable):|ThrottlingException"
    r"|Too many tokens, please wait|quota exceeded|resource[\s_]exhausted|overloaded",
    re.IGNORECASE | re.MULTILINE,
)
_CREDENTIAL_TEXT = re.compile(
    r"enforced_spend_limit_reached|reached your (specified )?(workspace )?API usage limits"
    r"|credit balance is too low|insufficient_quota|insufficient credits|payment required"
    r"|Unable to locate credentials|security token included in the request is invalid|AccessDeniedException"
    r"|API key not valid|Incorrect API key|invalid api token|invalid x-api-key",
    re.IGNORECASE,
)
_THINKING_TEXT = re.compile(
    r"Invalid `?signature`? in `?thinking`? block|blocks in the latest assistant message cannot be modified"
    r"|Expected `?thinking`? or `?redacted_thinking`?, but found|block is bound to a different conversation"
    r"|assistant message contains any thinking blocks|must start with a thinking block"
    r"|messages\.\d+\.content\.\d+[^\n]*\bthinking\b",
    re.IGNORECASE,
)
_OVERLOADED_TEXT = re.compile(r"overloaded", re.IGNORECASE)
_RATE_TEXT = re.compile(r"rate.?limit|too many (requests|tokens)|throttl|quota|exhausted", re.IGNORECASE)

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
_LLAMA_INPUT = re.compile(r'"n_prompt_tokens"\s*:\s*(\d+)')
_LLAMA_WINDOW = re.compile(r'"n_ctx"\s*:\s*(\d+)')


def classify(status: int | None, error_type: str, body_text: str) -> Classified:
    """The kind of an error.

    `status` is the HTTP status; None or 200 for an error event in a stream, which its type decides.
    `body_text` is the body as received: JSON, JSON within JSON, HTML or nothing.
    """
    layers = list(_unwrap(body_text))
    texts = "\n".join([error_type, body_text, *(layer.text for layer in layers)])
    statuses = {status, *(layer.status for layer in layers)}
    types = {error_type, *(layer.type for layer in layers)}
    in_stream = status is None or status < 400
    server_side = status is not None and status >= 500

    if not server_side and _CREDENTIAL_TEXT.search(texts):
        return Classified(ErrorKind.CREDENTIAL, "credential")
    if server_side or statuses & TRANSIENT_STATUSES or _TRANSIENT_TEXT.search(texts):
        return Classified(ErrorKind.TRANSIENT, _transient_rule(status, types, texts))
    if (in_stream or status in CREDENTIAL_STATUSES) and types & CREDENTIAL_TYPES:
        return Classified(ErrorKind.CREDENTIAL, "credential")
    if status in CREDENTIAL_STATUSES:
        return Classified(ErrorKind.CREDENTIAL, "credential")
    if in_stream and types & TRANSIENT_TYPES:
        return Classified(ErrorKind.TRANSIENT, _transient_rule(status, types, texts))
    if _THINKING_TEXT.search(texts):
        return Classified(ErrorKind.UNKNOWN, "thinking", is_thinking_error=True)
    for rule in TABLE:
        if match := rule.pattern.search(texts):
            return _decided(rule, match, body_text)
    if status == 413 or (status == 400 and not body_text.strip()):
        return Classified(ErrorKind.CONTEXT_FULL, "size")
    if status == 404:
        return Classified(ErrorKind.UNKNOWN, "model_not_found")
    if in_stream and "invalid_request_error" not in types:
        return Classified(ErrorKind.TRANSIENT, "server")
    return Classified(ErrorKind.UNKNOWN, "unknown")


def _transient_rule(status: int | None, types: set[str], texts: str) -> str:
    if status == 529 or "overloaded_error" in types or _OVERLOADED_TEXT.search(texts):
        return "overloaded"
    if status == 429 or "rate_limit_error" in types or _RATE_TEXT.search(texts):
        return "rate_limit"
    return "server"


def _decided(rule: Rule, match: re.Match[str], body_text: str) -> Classified:
    """The row's verdict, corrected by the numbers rule.

    With input, output and window known, the context is full only when the input leaves no room for an answer;
    else compacting would never end, because the output asked for is what does not fit.
    """
    groups = {name: int(text.replace(",", "")) for name, text in match.groupdict().items() if text}
    if rule.name == "llama_cpp":
        groups |= _llama_figures(body_text)
    if "input" in groups:
        groups["input"] += groups.pop("tools", 0)
    limit = groups.pop("limit", None)
    figures = Figures(**groups, output_limit=limit) if groups or limit else None
    kind = rule.kind
    if figures and figures.input is not None and figures.output is not None and figures.window is not None:
        full = figures.input >= figures.window - ANSWER_RESERVE_TOKENS
        kind = ErrorKind.CONTEXT_FULL if full else ErrorKind.OUTPUT_CAP
    return Classified(kind, rule.name, figures)


def _llama_figures(body_text: str) -> dict[str, int]:
    found = {}
    if match := _LLAMA_INPUT.search(body_text):
        found["input"] = int(match.group(1))
    if match := _LLAMA_WINDOW.search(body_text):
        found["window"] = int(match.group(1))
    return found


@dataclass(frozen=True)
class _Layer:
    status: int | None
    type: str
    text: str


def _unwrap(body_text: str, depth: int = 0) -> Iterator[_Layer]:
    """Each error object in a body: the outer one, and those that gateways put into its strings as JSON."""
    if depth > NESTING_LIMIT:
        return
    value = _embedded_json(body_text)
    if value is not None:
        yield from _layers(value, depth)


def _embedded_json(text: str) -> Any:
    """The first JSON object in a text (`litellm.X: ProviderException - {...}`), or None."""
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, _end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value


def _layers(value: Any, depth: int) -> Iterator[_Layer]:
    if depth > NESTING_LIMIT:
        return
    if isinstance(value, list):
        for item in value:
            yield from _layers(item, depth + 1)
    if not isinstance(value, dict):
        return
    code = value.get("code")
    message = value.get("message")
    texts = [item for item in (code, value.get("type"), value.get("__type"), message) if isinstance(item, str)]
    status = _status_in(code) or _status_in(value.get("status"))
    kind = value.get("type")
    yield _Layer(status, kind if isinstance(kind, str) else "", "\n".join(texts))
    for item in value.values():
        if isinstance(item, str):
            yield from _unwrap(item, depth + 1)
        else:
            yield from _layers(item, depth + 1)


def _status_in(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        value = int(value[:4])
    return value if isinstance(value, int) and 400 <= value <= 599 else None
