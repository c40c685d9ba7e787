"""What went wrong with a request, told from status, error type and body by one table.

Gateways rewrap each other's errors, and some answer a full context with the words of an output limit. The
order of the table matters: what is transient or about credentials is settled before any pattern about lengths
is tried, and figures in the body decide between a full context and an output limit that only has to be
lowered.
"""

import re
from dataclasses import dataclass

from django.utils.translation import gettext as _

from llm.error_bodies import unwrap
from llm.error_table import (
    CREDENTIAL_STATUSES,
    CREDENTIAL_TEXT,
    CREDENTIAL_TYPES,
    LLAMA_INPUT,
    LLAMA_WINDOW,
    OVERLOADED_TEXT,
    RATE_TEXT,
    TABLE,
    THINKING_TEXT,
    TRANSIENT_STATUSES,
    TRANSIENT_TEXT,
    TRANSIENT_TYPES,
    ErrorKind,
    Rule,
)
from maxclaw.text import head, visible

__all__ = ["Classified", "ErrorKind", "Figures", "ModelError", "classify", "redact", "sentence_for"]

DETAIL_MAX_CHARS = 2_000
# An error says what it has to say within this; a server that sends megabytes is not searched through.
BODY_MAX_CHARS = 50_000
# With less room than this beside the input, a lower output limit is no help: the context is full.
ANSWER_RESERVE_TOKENS = 1_024


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
        self.detail = head(visible(redact(detail)), DETAIL_MAX_CHARS)
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


def classify(status: int | None, error_type: str, body_text: str) -> Classified:
    """The kind of an error.

    `status` is the HTTP status; None or 200 for an error event in a stream, which its type decides.
    `body_text` is the body as received: JSON, JSON within JSON, HTML or nothing.
    """
    body_text = body_text[:BODY_MAX_CHARS]
    layers = list(unwrap(body_text))
    texts = "\n".join([error_type, body_text, *(layer.text for layer in layers)])
    statuses = {status, *(layer.status for layer in layers)}
    types = {error_type, *(layer.type for layer in layers)}
    in_stream = status is None or status < 400
    server_side = status is not None and status >= 500

    if not server_side and CREDENTIAL_TEXT.search(texts):
        return Classified(ErrorKind.CREDENTIAL, "credential")
    if server_side or statuses & TRANSIENT_STATUSES or TRANSIENT_TEXT.search(texts):
        return Classified(ErrorKind.TRANSIENT, _transient_rule(status, types, texts))
    if status in CREDENTIAL_STATUSES or (in_stream and (types & CREDENTIAL_TYPES or statuses & CREDENTIAL_STATUSES)):
        return Classified(ErrorKind.CREDENTIAL, "credential")
    if in_stream and types & TRANSIENT_TYPES:
        return Classified(ErrorKind.TRANSIENT, _transient_rule(status, types, texts))
    if THINKING_TEXT.search(texts):
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
    if status == 529 or "overloaded_error" in types or OVERLOADED_TEXT.search(texts):
        return "overloaded"
    if status == 429 or "rate_limit_error" in types or RATE_TEXT.search(texts):
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
    if match := LLAMA_INPUT.search(body_text):
        found["input"] = int(match.group(1))
    if match := LLAMA_WINDOW.search(body_text):
        found["window"] = int(match.group(1))
    return found
