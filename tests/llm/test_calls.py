"""`ask`: retries, a smaller output limit, other models, and what the ledger says of each attempt."""

import asyncio
import contextlib
import json
from dataclasses import replace

import pytest
from asgiref.sync import async_to_sync

from llm import calls, catalog, estimates, ledger, router
from llm.calls import ask, smaller_output
from llm.emulator.client import text, tool_use
from llm.errors import ErrorKind, Figures, ModelError
from llm.events import Answer, Started, TextDelta
from llm.models import ModelCall
from tests.llm.requests import Asking

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("database_threads")]


def models(*names):
    return [catalog.get(name) for name in names or ("emulator-main",)]


def asked(asking, *names):
    return async_to_sync(ask)(models(*names), asking.build, asking.on_event, asking.on_retry)


def outcomes():
    return list(ModelCall.objects.order_by("pk").values_list("model", "attempt", "outcome"))


def test_a_success_is_answered_and_left_open(emulator):
    emulator.answer("Hello")
    asking = Asking()
    answered = asked(asking)
    assert answered.answer.text == "Hello"
    assert answered.prepared.usage.prompt_tokens > 0
    assert answered.prepared.first_token_ms is not None
    assert answered.prepared.total_ms >= answered.prepared.first_token_ms
    assert isinstance(asking.events[0], Started)
    assert not any(isinstance(event, Answer) for event in asking.events)
    assert outcomes() == [("emulator-main", 1, "")]
    assert asking.builds == [("emulator-main", 1, None)]


FAULTS = {
    "429": {"kind": "status", "status": 429, "headers": {"retry-after": "0"}},
    "500": {"kind": "status", "status": 500},
    "529": {"kind": "status", "status": 529},
    "error event": {"kind": "error_event", "after_deltas": 1},
    "drop": {"kind": "drop", "after_deltas": 1},
    "stall": {"kind": "stall", "after_deltas": 1},
    "no message_stop": {"kind": "end_without_stop", "after_deltas": 1},
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_passing_fault_is_retried_and_recorded(emulator, settings, name):
    settings.MODEL_STALL_SECONDS = 0.3
    emulator.answer(text("Hello world", pieces=["Hel", "lo ", "world"]), times=2)
    emulator.fault(**FAULTS[name])
    asking = Asking()
    assert asked(asking).answer.text == "Hello world"
    assert outcomes() == [("emulator-main", 1, "transient"), ("emulator-main", 2, "")]
    assert [(kind, will_retry) for kind, _rule, will_retry in asking.retries] == [("transient", True)]
    failed = ModelCall.objects.earliest("pk")
    assert failed.error
    assert failed.total_ms is not None
    started = "status" not in FAULTS[name]
    assert (failed.input_tokens is not None) == started


def test_an_attempt_that_takes_too_long_is_not_repeated(emulator):
    emulator.answer("Too late", match={"model": "emulator-main"}, hold="for ever")
    emulator.answer("In time", match={"model": "emulator-light"})
    asking = Asking()
    two = models("emulator-main", "emulator-light")
    answered = async_to_sync(ask)(two, asking.build, asking.on_event, asking.on_retry, seconds=0.5)
    assert answered.answer.text == "In time"
    assert outcomes() == [("emulator-main", 1, "transient"), ("emulator-light", 2, "")]


def test_a_cut_inside_tool_json_is_an_answer_that_says_so(emulator):
    emulator.answer(tool_use("clock", {"zone": "Europe/Berlin"}, call_id="t_1"))
    emulator.fault("cut_tool_json")
    answer = asked(Asking()).answer
    assert (answer.stop_reason, answer.cut_tool_calls, answer.blocks) == ("max_tokens", {"t_1": "clock"}, [])


def test_after_the_retries_the_next_model_is_asked(emulator, settings):
    settings.MODEL_RETRIES = 1
    emulator.fault("status", status=529, times=2, match={"model": "emulator-main"})
    emulator.answer("From the light one", match={"model": "emulator-light-all"})
    asking = Asking()
    answered = asked(asking, "emulator-main", "emulator-light-all")
    assert answered.prepared.model.name == "emulator-light-all"
    assert outcomes() == [
        ("emulator-main", 1, "transient"),
        ("emulator-main", 2, "transient"),
        ("emulator-light-all", 3, ""),
    ]
    assert [will_retry for _kind, _rule, will_retry in asking.retries] == [True, True]
    assert not router.is_healthy(catalog.get("emulator-main"))
    assert router.is_healthy(catalog.get("emulator-light-all"))


def test_the_last_failure_is_raised_when_nobody_answers(emulator, settings):
    settings.MODEL_RETRIES = 0
    emulator.fault("status", status=500, times=2)
    asking = Asking()
    with pytest.raises(ModelError) as failed:
        asked(asking, "emulator-main", "emulator-light")
    assert failed.value.kind is ErrorKind.TRANSIENT
    assert [will_retry for _kind, _rule, will_retry in asking.retries] == [True, False]
    assert [outcome for _model, _attempt, outcome in outcomes()] == ["transient", "transient"]


def test_a_credential_error_goes_to_the_next_model_at_once(emulator):
    emulator.fault("status", status=401, match={"model": "emulator-main"})
    emulator.answer("ok")
    asked(Asking(), "emulator-main", "emulator-light-all")
    assert outcomes() == [("emulator-main", 1, "credential"), ("emulator-light-all", 2, "")]


def test_an_unknown_error_goes_to_the_next_model_at_once(emulator):
    emulator.fault("status", status=400, message="foo: Extra inputs are not permitted")
    emulator.answer("ok")
    asked(Asking(), "emulator-main", "emulator-light-all")
    assert outcomes() == [("emulator-main", 1, "unknown"), ("emulator-light-all", 2, "")]


def test_a_full_context_is_raised_before_any_fallback(emulator):
    emulator.fault("status", status=400, message="prompt is too long: 200251 tokens > 200000 maximum")
    asking = Asking()
    with pytest.raises(ModelError) as failed:
        asked(asking, "emulator-main", "emulator-light-all")
    assert failed.value.figures == Figures(200_251, None, 200_000)
    assert outcomes() == [("emulator-main", 1, "context_full")]
    assert asking.retries == [("context_full", "anthropic", False)]
    assert router.is_healthy(catalog.get("emulator-main"))


def test_a_thinking_error_is_raised_for_the_caller_to_mend(emulator):
    message = "messages.1.content.0: Invalid `signature` in `thinking` block"
    emulator.fault("status", status=400, message=message)
    with pytest.raises(ModelError) as failed:
        asked(Asking(), "emulator-main", "emulator-light-all")
    assert failed.value.is_thinking_error
    assert outcomes() == [("emulator-main", 1, "unknown")]


def test_an_output_cap_is_tried_once_more_with_a_smaller_limit(emulator):
    emulator.fault(
        "status",
        status=400,
        message="max_tokens: 1000 > 600, which is the maximum allowed number of output tokens for emulator-main",
    )
    emulator.answer("ok")
    asking = Asking()
    answered = asked(asking)
    assert asking.builds == [("emulator-main", 1, None), ("emulator-main", 2, 600)]
    assert answered.prepared.max_tokens == 600
    assert outcomes() == [("emulator-main", 1, "output_cap"), ("emulator-main", 2, "")]


def test_an_output_cap_that_stays_goes_to_the_next_model(emulator):
    message = "max_tokens: 1000 > 600, which is the maximum allowed number of output tokens for emulator-main"
    emulator.fault("status", status=400, message=message, times=2)
    emulator.answer("ok")
    asking = Asking()
    asked(asking, "emulator-main", "emulator-light-all")
    assert asking.builds == [
        ("emulator-main", 1, None),
        ("emulator-main", 2, 600),
        ("emulator-light-all", 3, None),
    ]


@pytest.mark.parametrize(
    ("asked_for", "figures", "expected"),
    [
        (64_000, Figures(output=64_000, output_limit=16_384), 16_384),
        (64_000, Figures(150_000, 64_000, 200_000), 50_000 - 64),
        (64_000, None, 32_000),
        (64_000, Figures(199_990, 64_000, 200_000), 256),
        (100, Figures(output=100, output_limit=400), 100),
        (1, None, 1),
    ],
)
def test_the_smaller_limit_follows_from_the_figures(asked_for, figures, expected):
    assert smaller_output(asked_for, figures) == expected


def test_the_wait_that_a_server_asks_for_is_kept():
    failure = ModelError(ErrorKind.TRANSIENT, "x", retry_after=7)
    assert 7 <= (calls._wait_seconds(failure, 0, 3) or 0) <= 7 * 1.25


def test_a_server_that_asks_for_minutes_is_not_waited_for():
    assert calls._wait_seconds(ModelError(ErrorKind.TRANSIENT, "x", retry_after=31), 0, 3) is None


def test_waits_grow_and_end(settings):
    settings.MODEL_RETRY_BASE_SECONDS = 1.0
    failure = ModelError(ErrorKind.TRANSIENT, "x")
    assert calls._wait_seconds(failure, 3, 3) is None
    waits = [calls._wait_seconds(failure, retries, 3) or 0 for retries in range(3)]
    assert 1 <= waits[0] <= 1.25 < 2 <= waits[1] <= 2.5 < 4 <= waits[2] <= 5


def test_what_was_shown_of_a_failed_attempt_is_announced_void(emulator):
    emulator.answer(text("Hello world", pieces=["Hel", "lo ", "world"]), times=2)
    emulator.fault("drop", after_deltas=2)
    told = []

    class Order(Asking):
        async def on_event(self, event):
            if isinstance(event, TextDelta):
                told.append(event.text)

        async def on_retry(self, error, will_retry):
            told.append("void")

    asked(Order())
    assert told == ["Hel", "lo ", "void", "Hel", "lo ", "world"]


def test_a_cancelled_question_leaves_its_call_open_with_what_is_known(emulator):
    emulator.answer(text("Hello world", pieces=["Hel", "lo"]))
    emulator.fault("stall", after_deltas=1)
    prepared = []

    class Kept(Asking):
        async def build(self, model, attempt, max_tokens):
            prepared.append(await super().build(model, attempt, max_tokens))
            return prepared[-1]

    async def scenario():
        asking = Kept()
        task = asyncio.create_task(ask(models(), asking.build, asking.on_event, asking.on_retry))
        await asyncio.to_thread(emulator.wait_for_held)
        while not any(isinstance(event, TextDelta) for event in asking.events):
            await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async_to_sync(scenario)()
    assert outcomes() == [("emulator-main", 1, "")]
    assert prepared[0].usage.prompt_tokens > 0
    assert prepared[0].first_token_ms is not None
    assert prepared[0].total_ms is not None


def test_an_error_never_enters_a_later_request(emulator):
    emulator.fault("status", status=500, message="SECRET WORDS")
    emulator.answer("ok")
    asked(Asking())
    assert "SECRET WORDS" not in json.dumps(emulator.bodies()[-1])
    first, second = emulator.requests(path="/v1/messages")
    assert first["body"] == second["body"]


def test_now_and_then_an_estimate_is_compared_with_the_usage(emulator):
    emulator.answer("ok", times=estimates.FIRST_SAMPLES + 1)
    for _index in range(estimates.FIRST_SAMPLES + 1):
        answered = asked(Asking())
        call = answered.prepared.call
        ledger.close_call(call, outcome="complete", usage=answered.prepared.usage)
    stored = list(ModelCall.objects.order_by("pk").values_list("estimated_tokens", flat=True))
    assert [bool(tokens) for tokens in stored] == [True] * estimates.FIRST_SAMPLES + [False]
    assert estimates.ratio(catalog.get("emulator-main")) != 1.0


def test_nobody_to_ask_is_a_mistake_of_the_caller():
    asking = Asking()
    with pytest.raises(ValueError, match="no model"):
        async_to_sync(ask)([], asking.build, asking.on_event, asking.on_retry)


def test_a_model_without_an_address_is_passed_over(emulator):
    emulator.answer("ok")
    asking = Asking()
    nowhere = replace(catalog.get("emulator-light"), base_url="")
    async_to_sync(ask)([nowhere, *models()], asking.build, asking.on_event, asking.on_retry)
    assert [outcome for _model, _attempt, outcome in outcomes()] == ["credential", ""]
