"""The table of errors, row by row: bodies as gateways send them."""

import json

import pytest
from django.utils import translation

from llm.errors import DETAIL_MAX_CHARS, ErrorKind, Figures, ModelError, classify, redact, sentence_for

TRANSIENT, CREDENTIAL = ErrorKind.TRANSIENT, ErrorKind.CREDENTIAL
FULL, CAP, UNKNOWN = ErrorKind.CONTEXT_FULL, ErrorKind.OUTPUT_CAP, ErrorKind.UNKNOWN


def anthropic(message, error_type="invalid_request_error"):
    return json.dumps({"type": "error", "error": {"type": error_type, "message": message}, "request_id": "req_x"})


def openai(message, code=None, error_type="invalid_request_error"):
    return json.dumps({"error": {"message": message, "type": error_type, "param": "messages", "code": code}})


CONTEXT_FULL = {
    "anthropic": (400, anthropic("prompt is too long: 200251 tokens > 200000 maximum"), (200_251, None, 200_000)),
    "anthropic without figures": (400, anthropic("Prompt is too long"), None),
    "anthropic older": (
        400,
        anthropic(
            "input length and `max_tokens` exceed context limit: 199800 + 64000 > 200000, decrease input length or "
            "`max_tokens` and try again"
        ),
        (199_800, 64_000, 200_000),
    ),
    "anthropic 413": (
        413,
        '{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        None,
    ),
    "413 in HTML": (413, "<html><head><title>413 Request Entity Too Large</title></head></html>", None),
    "413 by size of the window": (413, anthropic("Request size exceeds model context window"), None),
    "413 with any other body": (413, "too big", None),
    "vertex": (
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": anthropic("prompt is too long: 210000 tokens > 200000 maximum"),
                }
            }
        ),
        (210_000, None, 200_000),
    ),
    "vertex payload": (400, openai("400 Request payload size exceeds the limit: 20971520 bytes."), None),
    "bedrock": (400, '{"__type":"ValidationException","message":"Input is too long for requested model."}', None),
    "bedrock bytes": (400, '{"message":"ValidationException: too many total text bytes: 9 > 8"}', None),
    "bedrock schema": (400, '{"message":"Malformed input request: expected maxLength: 100000, actual: 2"}', None),
    "bedrock prompt length": (400, '{"message":"prompt: length: 1..20480"}', None),
    "bedrock mantle": (
        400,
        openai("prompt tokens (210,000) exceed customer model maximum (200000)", code="validation_error"),
        (210_000, None, 200_000),
    ),
    "openai": (
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. "
            "Please reduce the length of the messages.",
            code="context_length_exceeded",
        ),
        (9_001, None, 8_192),
    ),
    "openai with completion": (
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (9000 in the "
            "messages, 1000 in the completion). Please reduce the length of the messages or completion."
        ),
        (9_000, 1_000, 8_192),
    ),
    "openai responses": (400, openai("Your input exceeds the context window of this model."), None),
    "codex in a stream": (
        200,
        '{"type":"error","error":{"type":"response.failed","code":"context_length_exceeded","message":"failed"}}',
        None,
    ),
    "azure": (400, openai("Input tokens exceed the configured limit of 272000 tokens."), None),
    "openrouter": (
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "This endpoint's maximum context length is 131072 tokens. However, you requested about "
                    "140000 tokens (130000 of text input, 2000 of tool input, 8000 in the output). Please reduce",
                }
            }
        ),
        (132_000, 8_000, 131_072),
    ),
    "openrouter wrapped": (
        400,
        json.dumps(
            {
                "error": {
                    "code": 400,
                    "message": "Provider returned error",
                    "metadata": {"raw": anthropic("prompt is too long: 9 tokens > 8 maximum"), "provider_name": "A"},
                }
            }
        ),
        (9, None, 8),
    ),
    "litellm": (
        400,
        openai(
            "litellm.BadRequestError: litellm.ContextWindowExceededError: AnthropicError - "
            + anthropic("prompt is too long: 210543 tokens > 200000 maximum")
        ),
        (210_543, None, 200_000),
    ),
    "litellm by class alone": (400, openai("litellm.ContextWindowExceededError: oh"), None),
    "litellm other words": (400, openai("the input is longer than the model's context length"), None),
    "xai": (
        400,
        '{"code":"Client specified an invalid argument","error":"This model\'s maximum prompt length is 131072 but the '
        'request contains 140000 tokens."}',
        (140_000, None, 131_072),
    ),
    "gemini": (
        400,
        '{"error":{"code":400,"message":"The input token count (1100000) exceeds the maximum number of tokens allowed '
        '(1048576).","status":"INVALID_ARGUMENT"}}',
        (1_100_000, None, 1_048_576),
    ),
    "groq": (400, openai("Please reduce the length of the messages or completion."), None),
    "github copilot": (
        400,
        openai("prompt token count of 70000 exceeds the limit of 64000", "model_max_prompt_tokens_exceeded"),
        (70_000, None, 64_000),
    ),
    "mistral": (
        400,
        '{"message":"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context '
        'length"}',
        (40_000, None, 32_768),
    ),
    "minimax": (400, openai("invalid params, context window exceeds limit (2013)"), None),
    "kimi": (400, openai("Invalid request: Your request exceeded model token limit: 131072"), (None, None, 131_072)),
    "dashscope": (
        400,
        openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"),
        (None, None, 129_024),
    ),
    "z.ai": (400, '{"error":{"code":"1261","message":"Prompt exceeds max length"}}', None),
    "z.ai in a stream": (200, '{"error":{"code":"1261","message":"no words that help"}}', None),
    "cerebras": (
        400,
        '{"message":"Please reduce the length. Current length is 9000 while limit is 8192"}',
        (9_000, None, 8_192),
    ),
    "cerebras without a body": (400, "", None),
    "413 without a body": (413, "", None),
    "together": (
        422,
        openai("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. "
               "Given: 4000 `inputs` tokens and 512 `max_new_tokens`"),
        (4_000, 512, 4_097),
    ),
    "tgi": (422, '{"error":"Input validation error: maximum input length 4096","error_type":"validation"}', None),
    "tgi limit": (422, '{"error":"length limit exceeded"}', None),
    "cohere": (400, '{"message":"too many tokens: size limit exceeded by 100 tokens"}', None),
    "ai21": (400, '{"detail":"Prompt has too many tokens"}', None),
    "aleph alpha": (400, '{"error":"The prompt is longer than the model\'s maximum context length"}', None),
    "nlp cloud": (400, '{"detail":"Input text length should not exceed 1024 tokens"}', None),
    "cloudflare": (413, '{"errors":[{"message":"exceeded this model context window limit"}]}', None),
    "cloudflare other words": (
        400,
        '{"errors":[{"message":"Requested token count exceeds the model\'s maximum context length of 8192 tokens"}]}',
        None,
    ),
    "vllm": (
        400,
        openai(
            "This model's maximum context length is 32768 tokens. However, you requested 512 output tokens and your "
            "prompt contains at least 32700 input tokens, for a total of at least 33212 tokens.",
            error_type="BadRequestError",
        ),
        (32_700, 512, 32_768),
    ),
    "vllm older": (
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 2048. This model's maximum context length is 8192 "
            "tokens and your request has 8190 input tokens (2048 > 8192 - 8190)."
        ),
        (8_190, 2_048, 8_192),
    ),
    "llama.cpp": (
        400,
        '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":'
        '"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}',
        (9_000, None, 4_096),
    ),
    "ollama": (400, '{"error":"prompt too long; exceeded max context length by 100 tokens"}', None),
    "lm studio": (
        400,
        '{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}',
        None,
    ),
    "generic": (400, '{"error":"token limit exceeded"}', None),
    "generic with underscores": (422, '{"error":"CONTEXT_LENGTH_EXCEEDED"}', None),
    "generic exceeds": (400, "request exceeds the context", None),
}  # fmt: skip

OUTPUT_CAP = {
    "over the model's output limit": (
        anthropic(
            "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5"
        ),
        Figures(output=99_999, output_limit=64_000),
    ),
    "too much beside the input": (
        anthropic("max_tokens: 32768 > context_window: 200000 - input_tokens: 190000 = available_tokens: 10000"),
        Figures(190_000, 32_768, 200_000),
    ),
    "anthropic older with room for an answer": (
        anthropic("input length and `max_tokens` exceed context limit: 7884 + 131072 > 131072"),
        Figures(7_884, 131_072, 131_072),
    ),
    "openrouter with little input": (
        openai(
            "maximum context length is 131072 tokens. However, you requested about 138956 tokens (7884 of text input, "
            "131072 in the output)"
        ),
        Figures(7_884, 131_072, 131_072),
    ),
    "vllm older with room": (
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 "
            "tokens and your request has 100 input tokens"
        ),
        Figures(100, 8_192, 8_192),
    ),
    "vllm with room": (
        openai(
            "This model's maximum context length is 32768 tokens. However, you requested 32768 output tokens and your "
            "prompt contains 500 input tokens"
        ),
        Figures(500, 32_768, 32_768),
    ),
    "openai": (
        openai("max_tokens is too large: 99999. This model supports at most 16384 completion tokens"),
        Figures(output=99_999, output_limit=16_384),
    ),
}

CREDENTIALS = {
    "key": (401, anthropic("invalid x-api-key", "authentication_error")),
    "billing": (402, anthropic("no", "billing_error")),
    "permission": (403, anthropic("no", "permission_error")),
    "credit": (
        400,
        anthropic(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
            "purchase credits."
        ),
    ),
    "usage limit": (400, anthropic("You have reached your specified workspace API usage limits.")),
    "spend limit": (
        429,
        '{"type":"error","error":{"type":"rate_limit_error","message":"You have reached your API usage limits.",'
        '"details":{"error_code":"enforced_spend_limit_reached"}}}',
    ),
    "openai quota": (429, openai("You exceeded your current quota", "insufficient_quota")),
    "openrouter credits": (402, '{"error":{"code":402,"message":"Insufficient credits"}}'),
    "aws": (400, '{"message":"The security token included in the request is invalid"}'),
    "aws access": (400, '{"__type":"AccessDeniedException","message":"no"}'),
    "aws nothing": (400, "Unable to locate credentials"),
    "google": (400, '{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}'),
    "openai key": (401, openai("Incorrect API key provided")),
    "replicate": (400, '{"detail":"invalid api token"}'),
    "in a stream": (200, anthropic("no", "authentication_error")),
    "in a stream by code": (200, '{"error":{"code":401,"message":"no"}}'),
}

TRANSIENTS = {
    "rate limit": (429, anthropic("slow down", "rate_limit_error"), "rate_limit"),
    "overloaded": (529, anthropic("Overloaded", "overloaded_error"), "overloaded"),
    "server": (500, anthropic("Internal server error", "api_error"), "server"),
    "bad gateway in HTML": (502, "<html>502 Bad Gateway</html>", "server"),
    "timeout": (504, anthropic("timeout", "timeout_error"), "server"),
    "conflict": (409, anthropic("conflict", "conflict_error"), "server"),
    "request timeout": (408, "", "server"),
    "wrapped rate limit in a 5xx": (500, '{"error":{"code":429,"message":"upstream"}}', "server"),
    "wrapped rate limit in a 400": (400, '{"error":{"code":429,"message":"upstream"}}', "server"),
    "envoy": (503, "upstream connect error or disconnect/reset before headers. reset reason: overflow", "server"),
    "length words in a 5xx": (500, openai("prompt is too long"), "server"),
    "bedrock throttling": (400, '{"__type":"ThrottlingException","message":"slow"}', "rate_limit"),
    "bedrock wait": (400, '{"message":"Too many tokens, please wait before trying again."}', "rate_limit"),
    "bedrock prefix": (400, '{"message":"Throttling error: Too many tokens"}', "rate_limit"),
    "google exhausted": (400, '{"error":{"status":"RESOURCE_EXHAUSTED","message":"no"}}', "rate_limit"),
    "quota": (400, '{"error":{"message":"Quota exceeded for requests"}}', "rate_limit"),
    "overloaded in a 400": (400, openai("The engine is currently overloaded"), "overloaded"),
    "overloaded in a stream": (200, anthropic("Overloaded", "overloaded_error"), "overloaded"),
    "server in a stream": (200, anthropic("Internal server error", "api_error"), "server"),
    "rate in a stream": (200, anthropic("no", "rate_limit_error"), "rate_limit"),
    "unknown type in a stream": (200, '{"error":{"type":"mystery","message":"?"}}', "server"),
}

THINKING = [
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
    "modified. These blocks must remain as they were in the original response.",
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. "
    'Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
    "enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` "
    "and `tool_result` blocks).",
    "If an assistant message contains any thinking blocks, the first block must be `thinking` or `redacted_thinking`. "
    "Found `text`.",
    "messages.5.content.0.thinking: each thinking block must contain thinking",
]

NEITHER = {
    "image": anthropic("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 > 5242880"),
    "image dimensions": anthropic("messages.0.content.1: at least one of the image dimensions exceed max allowed size"),
    "image code": '{"error":{"type":"invalid_request_error","message":"no","details":{"error_code":'
    '"image_dimensions_too_large"}}}',
    "string too long": openai("Invalid 'input': string too long", "string_above_max_length"),
    "user": openai("Invalid 'user': string too long. Expected maximum length 64"),
    "parameter": openai("Unsupported parameter: 'max_tokens' is not supported with this model."),
    "orphan tool use": anthropic(
        "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_a."
    ),
    "thinking parameter": anthropic('"thinking.type.enabled" is not supported for this model.'),
    "unknown field": anthropic("foo: Extra inputs are not permitted"),
}


@pytest.mark.parametrize("name", CONTEXT_FULL)
def test_a_full_context_in_any_gateways_words(name):
    status, body, figures = CONTEXT_FULL[name]
    verdict = classify(status, "", body)
    assert verdict.kind is FULL
    assert not verdict.is_thinking_error
    assert verdict.figures == (Figures(*figures) if figures else None)


@pytest.mark.parametrize("name", OUTPUT_CAP)
def test_an_output_limit_is_no_full_context(name):
    body, figures = OUTPUT_CAP[name]
    verdict = classify(400, "invalid_request_error", body)
    assert (verdict.kind, verdict.figures) == (CAP, figures)


def test_too_much_output_with_no_room_left_is_a_full_context():
    body = anthropic("max_tokens: 900 > context_window: 200000 - input_tokens: 199500 = available_tokens: 500")
    assert classify(400, "", body).kind is FULL


@pytest.mark.parametrize("name", CREDENTIALS)
def test_what_only_the_operator_can_mend_is_a_credential_error(name):
    assert classify(CREDENTIALS[name][0], "", CREDENTIALS[name][1]).kind is CREDENTIAL


@pytest.mark.parametrize("name", TRANSIENTS)
def test_what_passes_by_itself_is_transient(name):
    status, body, rule = TRANSIENTS[name]
    verdict = classify(status, "", body)
    assert verdict.kind is TRANSIENT
    assert verdict.rule == rule or "wrapped" in name


@pytest.mark.parametrize("message", THINKING)
def test_a_400_about_thinking_is_recognised(message):
    verdict = classify(400, "invalid_request_error", anthropic(message))
    assert (verdict.kind, verdict.is_thinking_error) == (UNKNOWN, True)


@pytest.mark.parametrize("name", NEITHER)
def test_other_refusals_are_unknown(name):
    verdict = classify(400, "invalid_request_error", NEITHER[name])
    assert (verdict.kind, verdict.is_thinking_error) == (UNKNOWN, False)


def test_an_unknown_model_is_named_as_one():
    verdict = classify(404, "not_found_error", anthropic("model: foo", "not_found_error"))
    assert (verdict.kind, verdict.rule) == (UNKNOWN, "model_not_found")


def test_a_body_nested_without_end_is_read_all_the_same():
    body = "x"
    for _depth in range(40):
        body = json.dumps({"error": {"message": body[:100_000]}})
    assert classify(400, "", body).kind is UNKNOWN
    assert classify(400, "", "[" * 100_000).kind is UNKNOWN
    assert classify(400, "", '{"a":' * 100_000).kind is UNKNOWN


@pytest.mark.parametrize("kind", ErrorKind)
def test_each_kind_has_a_sentence_in_each_rule(kind):
    for rule in ["", "rate_limit", "overloaded", "stall", "truncated", "dropped", "unreachable", "server", "thinking"]:
        sentence = sentence_for(kind, rule)
        assert sentence[0].isupper()
        assert sentence.endswith(".")


def test_the_sentence_is_in_the_language_of_whoever_reads_it():
    failure = ModelError(FULL, "x")
    with translation.override("en"):
        assert "no longer fits" in failure.sentence


@pytest.mark.parametrize(
    "secret",
    [
        "sk-ant-api03-abcdefghij",
        "Bearer abcdef123456",
        "AKIAABCDEFGHIJKLMNOP",
        "hf_abcdefghijklmn",
        "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJ",
    ],
)
def test_keys_are_taken_out_of_details(secret):
    assert redact(f"bad key {secret} given") == "bad key [redacted] given"


def test_passwords_in_addresses_are_taken_out():
    assert redact("https://user:secret@host/x?key=abcdef12") == "https://[redacted]@host/x?key=[redacted]"


def test_a_detail_can_be_stored_and_is_bounded():
    failure = ModelError(UNKNOWN, "a\x00\ud800" + "x" * 5_000)
    assert failure.detail.startswith("a␀\\ud800")
    assert len(failure.detail) == DETAIL_MAX_CHARS
