"""Budgets of background calls: two clocks' days, two kinds of money, and no room given away twice."""

import threading
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import connection, transaction

from llm import budgets, catalog, ledger
from llm.budgets import BudgetExhausted
from llm.models import ModelCall
from llm.prices import Usage
from maxclaw import clock
from tests.llm.requests import opened

OPUS = "claude-opus-5-5"


@pytest.fixture(autouse=True)
def limits(settings):
    settings.BUDGET_USER_TOKENS = 10_000
    settings.BUDGET_USER_DOLLARS = 1_000.0
    settings.BUDGET_SERVER_TOKENS = 25_000
    settings.BUDGET_SERVER_DOLLARS = 1_000.0


def background_call(owner, tokens=4_000, model=OPUS):
    with transaction.atomic():
        reservation = budgets.reserve(owner, catalog.get(model), tokens - 1_000, 1_000, "steward")
        call, _body = opened(catalog.get(model), purpose="steward", owner=owner, reserve=reservation)
    return call


@pytest.mark.django_db
def test_a_call_reserves_its_estimate_before_it_starts(alice):
    call = background_call(alice)
    assert call.reserved_tokens == 4_000
    assert call.reserved_cost == Decimal("0.012") + Decimal("0.02")
    assert budgets.spent_today(alice) == budgets.Spent(4_000, Decimal("0.032"))


@pytest.mark.django_db
def test_a_spent_day_refuses_and_says_when_the_next_one_starts(alice, bob):
    background_call(alice)
    background_call(alice)
    with pytest.raises(BudgetExhausted) as refused:
        background_call(alice)
    assert refused.value.until > clock.now()
    assert "account" in refused.value.sentence
    assert ModelCall.objects.count() == 2
    background_call(bob)


@pytest.mark.django_db
def test_the_server_has_a_day_of_its_own(alice, bob, charlie):
    for person in (alice, bob, charlie):
        background_call(person, 8_000)
    with pytest.raises(BudgetExhausted) as refused:
        background_call(charlie, 2_000)
    assert "server" in refused.value.sentence
    assert refused.value.until.astimezone(UTC).timetz().isoformat() == "00:00:00+00:00"


@pytest.mark.django_db
def test_calls_of_nobody_count_for_the_server_alone(alice):
    background_call(None, 20_000)
    assert budgets.spent_today(None).tokens == 20_000
    assert budgets.spent_today(alice).tokens == 0


@pytest.mark.django_db
def test_list_price_is_a_limit_of_its_own(alice, settings):
    settings.BUDGET_USER_DOLLARS = 0.05
    background_call(alice)
    with pytest.raises(BudgetExhausted):
        background_call(alice)


@pytest.mark.django_db
def test_where_a_price_is_missing_tokens_alone_count(alice, settings):
    settings.BUDGET_USER_DOLLARS = 0.0
    unpriced = replace(catalog.get(OPUS), price_tiers=())
    with transaction.atomic():
        reservation = budgets.reserve(alice, unpriced, 100, 100, "steward")
    assert reservation == budgets.Reservation(200, None)


@pytest.mark.django_db
def test_what_was_really_used_takes_the_place_of_the_estimate(alice):
    call = background_call(alice, 9_000)
    ledger.close_call(call, outcome="complete", usage=Usage(100, 20, 300, 40, 50))
    assert budgets.spent_today(alice).tokens == 510
    assert budgets.spent_today(alice).cost == call.cost
    background_call(alice, 9_000)


@pytest.mark.django_db
def test_a_call_that_failed_before_any_usage_gives_its_room_back(alice):
    call = background_call(alice, 9_000)
    ledger.close_call(call, outcome="transient")
    assert budgets.spent_today(alice).tokens == 0


@pytest.mark.django_db
def test_a_call_whose_end_nobody_saw_keeps_its_room(alice):
    call = background_call(alice, 9_000)
    ledger.close_call(call, outcome="interrupted")
    assert budgets.spent_today(alice).tokens == 9_000


@pytest.mark.django_db
def test_turns_take_nothing_from_the_budget(alice):
    call, _body = opened(catalog.get(OPUS), owner=alice)
    ledger.close_call(call, outcome="complete", usage=Usage(1_000_000, 1_000))
    assert budgets.spent_today(alice).tokens == 0
    with transaction.atomic(), pytest.raises(ValueError, match="turns"):
        budgets.reserve(alice, catalog.get(OPUS), 1, 1, "turn")


@pytest.mark.django_db(transaction=True)
def test_a_reservation_outside_a_transaction_is_refused(alice):
    with pytest.raises(RuntimeError, match="transaction"):
        budgets.reserve(alice, catalog.get(OPUS), 1, 1, "steward")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("zone", "now", "start", "end"),
    [
        ("UTC", "2026-11-30T10:00", "2026-11-30T00:00", "2026-12-01T00:00"),
        ("Asia/Shanghai", "2026-11-30T17:00", "2026-11-30T16:00", "2026-12-01T16:00"),
        ("America/New_York", "2026-11-01T12:00", "2026-11-01T04:00", "2026-11-02T05:00"),
    ],
)
def test_a_users_day_is_the_day_of_the_users_zone(alice, zone, now, start, end):
    alice.time_zone = zone
    shift = datetime.fromisoformat(now).replace(tzinfo=UTC) - clock.now()
    with clock.moved(shift.total_seconds()):
        found = budgets._day_of(alice)
    assert [moment.replace(tzinfo=None).isoformat(timespec="minutes") for moment in found] == [start, end]


@pytest.mark.django_db
def test_the_next_day_has_room_again(alice):
    background_call(alice, 10_000)
    with clock.moved(24 * 3600):
        background_call(alice, 10_000)


@pytest.mark.django_db(transaction=True)
def test_two_connections_never_take_the_same_room(alice):
    """Ten at once want 4,000 of 10,000 tokens: two get them, whatever the interleaving."""
    start = threading.Barrier(10, timeout=20)
    results = []

    def work():
        try:
            start.wait()
            background_call(alice)
            results.append("taken")
        except BudgetExhausted:
            results.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _index in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == ["refused"] * 8 + ["taken"] * 2
    assert budgets.spent_today(alice).tokens == 8_000
