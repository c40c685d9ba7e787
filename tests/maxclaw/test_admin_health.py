"""What an operator is told: work that stands still, what calls cost, what budgets have left."""

import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone
from django_q.models import OrmQ, Task

from agent import health
from llm import catalog, ledger
from llm.costs import costs
from llm.models import ModelCall
from llm.prices import Usage
from maxclaw import clock
from maxclaw.schedule import TICK_FUNCTION
from tests.llm.requests import opened
from tests.maxclaw.console_records import fill, fill_server, forget_heartbeats, lapse
from tests.threads.records import thread_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    return charlie


@pytest.fixture
def console(client, staff):
    client.force_login(staff)
    return client


def test_work_that_goes_raises_no_alarm(staff):
    fill_server(staff)
    Task.objects.filter(success=False).delete()
    work = health.work()
    assert (work.queued_tasks, work.alarms, work.lapsed, work.failed_jobs) == (1, 0, [], [])
    assert work.tick_age < 10
    assert work.worker_age < 10


def test_a_server_on_which_nothing_ever_ran_is_alarming(console):
    work = health.work()
    assert (work.tick_age, work.worker_age) == (None, None)
    assert work.alarms == 2
    assert "2 things need a look" in console.get(reverse("admin:agent_health")).content.decode()


def test_a_late_tick_and_a_silent_worker_raise_alarms(staff):
    fill_server(staff)
    long_ago = timezone.now() - timedelta(seconds=health.TICK_LATE_SECONDS + 5)
    Task.objects.update(stopped=long_ago)
    forget_heartbeats()
    work = health.work()
    assert work.tick_late
    assert work.workers_silent


def test_a_job_of_the_tick_that_failed_is_named(console, staff):
    fill_server(staff)
    Task.objects.all().delete()
    now = timezone.now()
    outcome = {"sweep lapsed leases": True, "prune turn events": False}
    Task.objects.create(id="1", name="t", func=TICK_FUNCTION, started=now, stopped=now, success=True, result=outcome)
    assert health.work().failed_jobs == ["prune turn events"]
    assert "prune turn events" in console.get(reverse("admin:agent_health")).content.decode()


def test_a_lapsed_lease_is_listed_with_its_holder(console, alice):
    thread = thread_of(alice)
    lapse(thread)
    page = console.get(reverse("admin:agent_health")).content.decode()
    assert thread.channel in page
    assert "web:gone:1" in page
    assert health.work().lapsed == [thread]


def test_a_long_queue_raises_an_alarm(staff):
    OrmQ.objects.bulk_create([OrmQ(key="maxclaw", payload="x") for _index in range(health.QUEUE_LONG + 1)])
    assert health.work().queue_long


def test_budgets_are_shown_for_the_server_and_whoever_used_some(console, alice, bob, settings):
    settings.BUDGET_USER_TOKENS = 4_000
    call, _body = opened(catalog.get("claude-opus-5-5"), owner=alice, purpose=ModelCall.Purpose.STEWARD)
    ModelCall.objects.filter(pk=call.pk).update(reserved_tokens=5_000)
    page = console.get(reverse("admin:agent_health"))
    rows = {row["who"]: row for row in page.context["budgets"]}
    assert set(rows) == {"the server", "alice"}
    assert rows["alice"]["tokens"] == rows["the server"]["tokens"] == 5_000
    assert (rows["alice"]["exhausted"], rows["the server"]["exhausted"]) == (True, False)


def test_costs_are_summed_by_day_and_model(alice):
    now = clock.now()
    for days, name in (
        (0, "claude-opus-5-5"),
        (0, "claude-haiku-5-5"),
        (2, "claude-opus-5-5"),
        (40, "claude-opus-5-5"),
    ):
        call, _body = opened(catalog.get(name), owner=alice)
        ledger.close_call(call, outcome="complete", usage=Usage(1_000, 100, 2_000))
        ModelCall.objects.filter(pk=call.pk).update(started=now - timedelta(days=days))
    found = costs(7, timezone.get_current_timezone(), "model")
    assert len(found.days) == 7
    assert found.days[-1] == now.date()
    assert found.total.calls == 3
    assert found.total.prompt_tokens == 9_000
    assert found.total.cache_read_tokens == 6_000
    assert found.total.output_tokens == 300
    assert list(found.by_name) == ["claude-opus-5-5", "claude-haiku-5-5"]
    stored = sum(
        ModelCall.objects.exclude(started__lt=now - timedelta(days=10)).values_list("cost", flat=True), Decimal(0)
    )
    assert found.total.dollars == stored > 0
    assert found.by_day[found.days[-1]]["claude-opus-5-5"].calls == 1
    assert found.by_day[found.days[-3]]["claude-opus-5-5"].calls == 1


def test_a_call_without_a_price_is_told_and_not_taken_for_free(console, alice):
    call, _body = opened(catalog.get("claude-opus-5-5"), owner=alice)
    ledger.close_call(call, outcome="complete", usage=Usage(1_000, 100, 0))
    other, _body = opened(catalog.get("claude-opus-5-5"), owner=alice)
    ModelCall.objects.filter(pk=other.pk).update(input_tokens=500, output_tokens=1, cost=None, outcome="complete")
    found = costs(1, timezone.get_current_timezone(), "model").total
    assert (found.unpriced, found.untold) == (1, 0)
    assert found.prompt_tokens == 1_500
    page = console.get(reverse("admin:llm_modelcall_costs")).content.decode()
    assert "1 call has no known price" in page
    listed = console.get(reverse("admin:llm_modelcall_changelist")).content.decode()
    assert "price unknown" in listed
    assert "without 1 calls of unknown price" in console.get(reverse("admin:index")).content.decode()


def test_charts_hold_each_day_and_name(console, staff, alice):
    fill(alice, staff)
    page = console.get(reverse("admin:llm_modelcall_costs") + "?days=7&by=purpose")
    chart = json.loads(page.context["tokens_chart"])
    assert len(chart["labels"]) == 7
    assert [dataset["label"] for dataset in chart["datasets"]] == ["turn"]
    assert sum(chart["datasets"][0]["data"]) == page.context["total"].tokens


@pytest.mark.parametrize("query", ["?days=x&by=owner", "?days=-1", "?days=100000&by="])
def test_a_period_that_is_not_offered_is_the_usual_one(console, query):
    page = console.get(reverse("admin:llm_modelcall_costs") + query)
    assert (page.context["days"], page.context["by"]) == (30, "model")
