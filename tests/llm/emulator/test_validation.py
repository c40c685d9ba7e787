"""The emulator refuses what the real API refuses, in the same words."""

import json

import anthropic
import httpx2
import pytest

from tests.llm.emulator.asking import MAIN, TOOLS, ask, assistant, call, refusal, result, user

ORPHAN = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each "
    "`tool_use` block "
    "must have a corresponding `tool_result` block in the next message."
)
UNEXPECTED = (
    "messages.{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block must "
    "have a "
    "corresponding `tool_use` block in the previous message."
)


def post(emulator, body, **headers):
    sent = {"x-api-key": "k", "anthropic-version": "2026-10-21", "content-type": "application/json"}
    sent = {name: value for name, value in {**sent, **headers}.items() if value is not None}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx2.post(f"{emulator.base_url}/v1/messages", content=raw, headers=sent, trust_env=False)


def simple(**changes):
    return {"model": MAIN, "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}], **changes}


def test_both_authentication_headers_are_accepted_and_none_is_a_401(emulator):
    assert post(emulator, simple()).status_code == 200
    assert post(emulator, simple(), **{"x-api-key": None, "authorization": "Bearer sk-x"}).status_code == 200
    refused = post(emulator, simple(), **{"x-api-key": None})
    assert refused.status_code == 401
    assert refused.json()["error"] == {
        "type": "authentication_error",
        "message": "x-api-key header is required",
    }
    assert refused.headers["request-id"] == refused.json()["request_id"]


def test_the_version_header_is_required_and_known(emulator):
    assert "required" in post(emulator, simple(), **{"anthropic-version": None}).json()["error"]["message"]
    assert post(emulator, simple(), **{"anthropic-version": "2025-01-01"}).status_code == 400


def test_sampling_parameters_left_with_the_new_version(emulator):
    new = post(emulator, simple(temperature=1))
    assert new.json()["error"]["message"] == "temperature: Extra inputs are not permitted"
    assert post(emulator, simple(temperature=1), **{"anthropic-version": "2023-06-01"}).status_code == 200


def test_unknown_beta_is_refused(emulator):
    refused = post(emulator, simple(), **{"anthropic-beta": "nonsense-1"})
    said = refused.json()["error"]["message"]
    assert said == "Unexpected value(s) `nonsense-1` for the `anthropic-beta` header."


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "The request body is not valid JSON"),
        (b"[]", "Input should be a valid dictionary"),
        (b'{"max_tokens":NaN}', "The request body is not valid JSON"),
        (json.dumps(simple(messages=[{"role": "user", "content": "\ud800"}])).encode(), "no low surrogate"),
    ],
)
def test_bodies_that_are_no_request(emulator, raw, words):
    refused = post(emulator, raw)
    assert refused.status_code == 400
    assert words in refused.json()["error"]["message"]


def test_a_body_nested_too_deeply_is_refused(emulator):
    deep = simple(messages=[{"role": "user", "content": "@"}])
    raw = json.dumps(deep).replace('"@"', "[" * 100_000 + "]" * 100_000).encode()
    assert post(emulator, raw).status_code == 400
    assert post(emulator, simple()).status_code == 200


def test_a_body_above_32_megabytes_is_a_413_in_the_edges_shape(emulator):
    refused = post(emulator, simple(messages=[{"role": "user", "content": "x" * (32 * 1024 * 1024)}]))
    assert refused.status_code == 413
    assert refused.json() == {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}


def test_unknown_model_is_a_404(client):
    with pytest.raises(anthropic.NotFoundError) as caught:
        ask(client, "hi", model="foo")
    assert caught.value.response.json()["error"] == {"type": "not_found_error", "message": "model: foo"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "messages: at least one message is required"),
        ([user("a"), assistant(call("toolu_a"), call("toolu_b"))], ORPHAN.format(1, "toolu_a, toolu_b")),
        ([user("a"), assistant(call("toolu_a")), user("go on")], ORPHAN.format(1, "toolu_a")),
        (
            [user("a"), assistant(call("toolu_a")), user("first words", result("toolu_a"))],
            ORPHAN.format(1, "toolu_a"),
        ),
        ([user("a", result("toolu_x"))], UNEXPECTED.format("0.content.1", "toolu_x")),
        (
            [user("a"), assistant(call("toolu_a")), user(result("toolu_a"), result("toolu_a"))],
            "messages.2.content.1: each tool_use must have a single result. Found multiple `tool_result` "
            "blocks with "
            "id: toolu_a",
        ),
        (
            [user("a"), assistant(call("toolu_a"), call("toolu_a")), user(result("toolu_a"))],
            "messages.1.content.1: `tool_use` ids must be unique",
        ),
        (
            [user("a"), assistant(call("a b")), user(result("a b"))],
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
        ),
        (
            [user("a"), assistant(call("toolu_a"), result("toolu_a"))],
            "messages.1: `tool_result` blocks can only be in `user` messages",
        ),
        (
            [user("a"), assistant(call("toolu_a")), user({"type": "tool_result", "content": "x"})],
            "messages.2.content.0.tool_result.tool_use_id: Field required",
        ),
        ([user("")], "messages: text content blocks must be non-empty"),
        ([user(" \n")], "messages: text content blocks must contain non-whitespace text"),
        (
            [user()],
            "messages.0: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            [user({"type": "text", "text": "", "cache_control": {"type": "ephemeral"}})],
            "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
        ),
        (
            [{"role": "system", "content": "x"}, user("a")],
            "messages.0: use the top-level 'system' parameter for the initial system prompt",
        ),
        (
            [user("a"), {"role": "system", "content": "x"}],
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" '
            "as an input message role.",
        ),
        ([assistant("a"), user("b")], 'messages: first message must use the "user" role'),
        (
            [user("a"), assistant("b")],
            "This model does not support assistant message prefill. The conversation must end with a user message.",
        ),
        (
            [user({"type": "text", "text": "a", "foo": 1})],
            "messages.0.content.0.text.foo: Extra inputs are not permitted",
        ),
        ([{**user("a"), "id": "m1"}], "messages.0.id: Extra inputs are not permitted"),
        (
            [user({"type": "video"})],
            "messages.0.content.0: Input tag 'video' found using 'type' does not match any of the expected "
            "tags: "
            "'document', 'image', 'redacted_thinking', 'search_result', 'text', 'thinking', 'tool_result', "
            "'tool_use'",
        ),
        (
            [user("a"), assistant({"type": "document", "source": {"type": "url", "url": "x"}}), user("b")],
            "messages.1: `document` blocks can only be in `user` messages",
        ),
        (
            [user("a"), assistant("b", {"type": "thinking", "thinking": "x"}), user("b")],
            "messages.1.content.1.thinking.signature: Field required",
        ),
        (
            [
                user("a"),
                assistant(
                    {
                        "type": "thinking",
                        "thinking": "x",
                        "signature": "y",
                        "cache_control": {"type": "ephemeral"},
                    }
                ),
                user("b"),
            ],
            "messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
        ),
    ],
)
def test_messages_are_refused_in_the_real_words(client, messages, words):
    assert refusal(client, *messages, tools=TOOLS) == words


def test_consecutive_messages_of_one_role_are_merged_before_pairing(client):
    calling = [assistant("let me see"), assistant(call("toolu_a"))]
    answering = [user(result("toolu_a")), user("so?")]
    assert ask(client, "a", *calling, *answering, tools=TOOLS).stop_reason == "end_turn"


def test_calls_and_results_may_be_spread_over_messages_of_one_turn(client):
    calling = [assistant(call("toolu_a")), assistant(call("toolu_b")), assistant("Two calls.")]
    answering = [user(result("toolu_a")), user(result("toolu_b"))]
    assert ask(client, "a", *calling, *answering, tools=TOOLS).stop_reason == "end_turn"


def test_a_leading_assistant_message_can_be_allowed(emulator, client):
    emulator.settings(allow_leading_assistant=True)
    assert ask(client, assistant("a"), user("b")).stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"extra_body": {"foo": 1}}, "foo: Extra inputs are not permitted"),
        (
            {"max_tokens": 20_000},
            "max_tokens: 20000 > 16384, which is the maximum allowed number of output tokens for emulator-main",
        ),
        ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
        (
            {"tools": [{**TOOLS[0], "name": "no spaces"}]},
            "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
        ),
        ({"tools": [TOOLS[0], TOOLS[0]]}, "tools: Tool names must be unique."),
        ({"tools": [{"name": "a"}]}, "tools.0.custom.input_schema: Field required"),
        (
            {"tools": [TOOLS[0], {"name": "a", "input_schema": {"type": "object", "properties": 3}}]},
            "tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12.",
        ),
        (
            {"tools": [{**TOOLS[0], "strict": True}]},
            "tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "required"}},
            "tool_choice: Input tag 'required' found using 'type' does not match any of the expected tags: "
            "'auto', "
            "'any', 'tool', 'none'",
        ),
        (
            {"tools": TOOLS, "tool_choice": {"type": "tool", "name": "x"}},
            "Tool 'x' not found in provided tools",
        ),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.',
        ),
        (
            {"model": "emulator-light", "thinking": {"type": "adaptive"}},
            "adaptive thinking is not supported on this model",
        ),
        ({"system": [{"type": "text", "text": ""}]}, "system: text content blocks must be non-empty"),
    ],
)
def test_parameters_are_refused_in_the_real_words(client, parameters, words):
    assert refusal(client, "hi", **parameters) == words


def test_tool_blocks_need_declared_tools(client):
    assert (
        refusal(client, user("a"), assistant(call("toolu_a")), user(result("toolu_a")))
        == "Requests which include `tool_use` or `tool_result` blocks must define tools."
    )


def test_a_prompt_above_the_window_is_refused_with_both_numbers(emulator, client):
    emulator.register_model("small", context_window_tokens=1_000, max_output_tokens=500)
    counted = client.messages.count_tokens(model="small", messages=[user("word " * 900)]).input_tokens
    assert counted > 1_000
    assert refusal(client, "word " * 900, model="small") == f"prompt is too long: {counted} tokens > 1000 maximum"


def test_an_answer_that_reaches_the_window_stops_there(emulator, client):
    emulator.register_model("small", context_window_tokens=1_000, max_output_tokens=500)
    emulator.answer("z" * 4_000)
    reply = ask(client, "word " * 700, model="small")
    assert reply.stop_reason == "model_context_window_exceeded"
    assert reply.usage.input_tokens + reply.usage.output_tokens == 1_000


def test_models_are_listed_with_their_limits(emulator, client):
    listed = {model.id: model for model in client.models.list()}
    assert set(listed) == {"emulator-main", "emulator-light", "emulator-light-all"}
    assert (listed[MAIN].max_input_tokens, listed[MAIN].max_tokens) == (200_000, 16_384)
    assert listed[MAIN].capabilities.thinking.types.adaptive.supported
    assert not listed["emulator-light"].capabilities.thinking.supported
    emulator.register_model("small", context_window_tokens=1_000)
    assert client.models.retrieve("small").max_input_tokens == 1_000
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("none")


def test_counting_agrees_with_the_bill(client):
    messages = [user("Hello there"), assistant("你好，世界"), user("and ünïcode, Ελληνικά, 🎉")]
    counted = client.messages.count_tokens(model=MAIN, messages=messages, tools=TOOLS, system="Be brief.")
    assert ask(client, *messages, tools=TOOLS, system="Be brief.").usage.input_tokens == counted.input_tokens
