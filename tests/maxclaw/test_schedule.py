"""The minute tick's schedule exists exactly once, however many servers make sure of it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django_q.models import Schedule

from maxclaw.schedule import TICK_NAME, ensure_schedule


def ensure_in_a_thread(_: int) -> None:
    try:
        ensure_schedule()
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_servers_that_start_at_once_make_one_schedule():
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(ensure_in_a_thread, range(8)))
    schedule = Schedule.objects.get(name=TICK_NAME)
    assert (schedule.func, schedule.minutes, schedule.repeats) == ("agent.tasks.tick", 1, -1)
    assert schedule.schedule_type == Schedule.MINUTES
    assert schedule.intended_date_kwarg == "intended"
    assert schedule.next_run.second == 0


@pytest.mark.django_db
def test_surplus_and_changed_schedules_are_put_right():
    tick = ensure_schedule()
    Schedule.objects.create(name=TICK_NAME, func="agent.tasks.tick")
    Schedule.objects.filter(id=tick.id).update(repeats=0, minutes=7, next_run=tick.next_run + timedelta(days=3))
    again = ensure_schedule()
    assert again.id == tick.id
    assert (again.repeats, again.minutes) == (-1, 1)
    assert again.next_run <= tick.next_run + timedelta(minutes=1)
    assert Schedule.objects.filter(name=TICK_NAME).count() == 1


@pytest.mark.django_db
def test_a_schedule_in_force_is_left_as_it_is():
    tick = ensure_schedule()
    Schedule.objects.filter(id=tick.id).update(next_run=tick.next_run - timedelta(hours=2))
    assert ensure_schedule().next_run == tick.next_run - timedelta(hours=2)


def test_the_queue_waits_longer_than_a_prefetched_task_can_take():
    """django-q starts a task's retry clock when it is fetched, and fetches more than its workers can run."""
    queue: dict[str, Any] = settings.Q_CLUSTER
    longest = queue["timeout"] * (1 + (queue["queue_limit"] + 1) / queue["workers"])
    assert queue["retry"] > longest
    assert queue["max_attempts"] == 1 and queue["ack_failures"]
