"""The ledger: one insert, one update, a price snapshot, and no sum smaller than the truth."""

from dataclasses import replace
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from llm import catalog, estimates, ledger, wire
from llm.catalog_entries import PriceTier
from llm.errors import ErrorKind, ModelError
from llm.models import ModelCall
from llm.prices import Usage, cost, prices_from_json, prices_to_json
from tests.llm.requests import opened

pytestmark = pytest.mark.django_db

USAGE = Usage(1_000_000, 100_000, 2_000_000, 400_000, 10_000)


def test_opening_is_one_insert_and_closing_one_update():
    model = catalog.get("claude-opus-5-5")
    opened(model)
    header = wire.remember_header("{}")
    with CaptureQueriesContext(connection) as queries:
        call = ledger.open_call(
            purpose="turn",
            owner_id=None,
            thread_id=1,
            generation_id=2,
            header=header,
            model=model,
            body_sha256="0" * 64,
            last_message_id=3,
            cut=1,
            thinking_from=4,
            anchors=[wire.Anchor("system", "1h"), wire.Anchor(3, "5m")],
            max_tokens=5,
        )
        ledger.close_call(call, outcome="complete", usage=USAGE, stop_reason="end_turn", answer_message_id=9)
    assert [query["sql"].split()[0] for query in queries] == ["INSERT", "UPDATE"]
    stored = ModelCall.objects.get(pk=call.pk)
    assert stored.anchors == [{"at": "system", "ttl": "1h"}, {"at": 3, "ttl": "5m"}]
    assert (stored.answer_message_id, stored.stop_reason, stored.outcome) == (9, "end_turn", "complete")
    assert stored.cost == call.cost


def test_the_cost_follows_from_the_prices_of_the_moment():
    call, _body = opened(catalog.get("claude-opus-5-5"))
    ledger.close_call(call, outcome="complete", usage=USAGE)
    call.refresh_from_db()
    assert call.prices == {
        "input": "4",
        "output": "20",
        "cache_read": "0.2",
        "cache_write_5m": "5",
        "cache_write_1h": "8",
    }
    assert call.cost == Decimal("4") + Decimal("2") + Decimal("0.4") + Decimal("2") + Decimal("0.08")


def test_a_cost_with_a_price_missing_is_null():
    call, _body = opened(catalog.get("claude-fable-5-2"))
    ledger.close_call(call, outcome="complete", usage=Usage(10, 10, cache_read_tokens=1))
    call.refresh_from_db()
    assert call.prices["cache_read"] is None
    assert call.cost is None


def test_a_price_that_is_not_needed_may_be_missing():
    call, _body = opened(catalog.get("claude-fable-5-2"))
    ledger.close_call(call, outcome="complete", usage=Usage(1_000_000, 0))
    assert call.cost == 8


def test_prices_in_tiers_follow_the_length_of_the_whole_prompt():
    model = catalog.get("claude-haiku-5-5")
    short = Usage(50_000, 1_000, 50_000)
    long = replace(short, cache_read_tokens=50_001)
    assert cost(short, model.prices_for(short.prompt_tokens)) == Decimal("0.006")
    assert cost(long, model.prices_for(long.prompt_tokens)) == Decimal("0.03000005")


def test_a_snapshot_is_read_back_exactly():
    prices = catalog.get("claude-fable-5-2").prices
    assert prices_from_json(prices_to_json(prices)) == prices
    assert prices_to_json(None) is None
    assert prices_from_json(None) is None
    assert cost(USAGE, None) is None


def test_a_tier_without_an_end_is_for_every_length():
    model = replace(catalog.get("claude-opus-5-5"), price_tiers=(PriceTier(10, {"input": Decimal(1)}),))
    assert model.prices_for(10) == {"input": Decimal(1)}
    assert model.prices_for(11) is None


def test_a_call_is_closed_once():
    call, _body = opened(catalog.get("emulator-main"))
    assert ledger.close_call(call, outcome="interrupted")
    assert not ledger.close_call(call, outcome="complete", usage=USAGE)
    call.refresh_from_db()
    assert (call.outcome, call.input_tokens) == ("interrupted", None)


def test_an_error_is_kept_with_status_and_request_id():
    call, _body = opened(catalog.get("emulator-main"))
    error = ModelError(ErrorKind.TRANSIENT, "529 overloaded", status=529, request_id="req_1")
    ledger.close_call(call, outcome=error.kind.value, error=error, total_ms=12)
    call.refresh_from_db()
    assert (call.status_code, call.request_id, call.error, call.total_ms) == (529, "req_1", "529 overloaded", 12)
    assert call.cost is None


def test_a_model_that_left_the_catalog_has_no_price():
    call, _body = opened(replace(catalog.get("emulator-main"), name="gone"))
    ledger.close_call(call, outcome="complete", usage=USAGE)
    call.refresh_from_db()
    assert (call.input_tokens, call.prices, call.cost) == (1_000_000, None, None)


def test_every_kind_of_error_is_an_outcome():
    assert {kind.value for kind in ErrorKind} <= set(ModelCall.Outcome.values)


def test_an_answer_that_was_cut_says_so():
    assert ledger.outcome_of("max_tokens") == "cut"
    assert ledger.outcome_of("model_context_window_exceeded") == "cut"
    assert ledger.outcome_of("end_turn") == "complete"


def test_calls_that_nobody_will_close_are_closed_as_interrupted():
    lost, _body = opened(catalog.get("emulator-main"))
    ModelCall.objects.filter(pk=lost.pk).update(thread_id=5)
    later, _body = opened(catalog.get("emulator-main"))
    ModelCall.objects.filter(pk=later.pk).update(thread_id=5)
    other, _body = opened(catalog.get("emulator-main"))
    assert ledger.close_open_calls(5, started_before_call=later.pk) == 1
    assert ledger.close_open_calls(5) == 1
    assert ledger.close_open_calls(5) == 0
    other.refresh_from_db()
    assert other.outcome == ""


def test_usage_corrects_later_estimates():
    model = catalog.get("emulator-main")
    before = estimates.ratio(model)
    call, _body = opened(model, estimated_tokens=100_000)
    ledger.close_call(call, outcome="complete", usage=Usage(150_000, 5))
    assert estimates.ratio(model) > before


@pytest.mark.parametrize("wire_usage", [{}, {"input_tokens": None, "output_tokens": "x"}, {"cache_creation": 5}])
def test_usage_in_any_shape_is_read(wire_usage):
    assert Usage.from_wire(wire_usage) == Usage()


def test_writes_without_a_lifetime_count_as_written_for_five_minutes():
    usage = Usage.from_wire({"input_tokens": 1, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 2})
    assert usage == Usage(1, 0, 2, 10, 0)
    assert usage.prompt_tokens == 13
    assert usage.total_tokens == 13
