"""Heartbeats: signs of life by the database's clock, for supervisors and load balancers."""

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.db.models.functions import Now
from django_q.models import OrmQ
from django_q.signals import post_execute_in_worker, pre_execute

from maxclaw import heartbeat
from maxclaw.heartbeat import Pulse
from maxclaw.models import Heartbeat

pytestmark = pytest.mark.django_db


def age_of(name: str) -> float:
    seconds = heartbeat.age(name)
    assert seconds is not None
    return seconds


def make_older(name: str, seconds: float) -> None:
    Heartbeat.objects.filter(name=name).update(beat_at=Now() - timedelta(seconds=seconds))


def test_an_age_counts_from_the_newest_beat():
    assert heartbeat.age("worker:a:1") is None
    heartbeat.beat("worker:a:1")
    make_older("worker:a:1", 50)
    assert age_of("worker:a:1") == pytest.approx(50, abs=5)
    heartbeat.beat("worker:a:1")
    assert age_of("worker:a:1") < 5


def test_workers_of_all_machines_count_and_nobody_else():
    heartbeat.beat("worker:a:1")
    make_older("worker:a:1", 50)
    heartbeat.beat("somebody")
    assert heartbeat.newest_worker_age() == pytest.approx(50, abs=5)


def test_beats_silent_for_a_day_are_forgotten():
    heartbeat.beat("worker:a:1")
    heartbeat.beat("worker:b:2")
    make_older("worker:a:1", 90_000)
    heartbeat.forget_old()
    assert list(Heartbeat.objects.values_list("name", flat=True)) == ["worker:b:2"]


def test_a_worker_beats_around_its_tasks_and_not_too_often(monkeypatch):
    pulse = Pulse("worker:a:1")
    pulse.task_starts()
    assert pulse.busy and age_of("worker:a:1") < 5
    make_older("worker:a:1", 50)
    pulse.task_ends()
    assert not pulse.busy
    assert age_of("worker:a:1") > 45  # too soon after the last one to write again
    pulse.last_beat -= heartbeat.SPARE_SECONDS
    pulse.task_starts()
    assert age_of("worker:a:1") < 5


def test_work_goes_on_when_the_sign_of_life_cannot_be_written(monkeypatch, caplog):
    def refuse(name: str) -> None:
        raise OperationalError("gone")

    monkeypatch.setattr(heartbeat, "beat", refuse)
    Pulse("worker:a:1").task_starts()
    assert "no heartbeat" in caplog.text


def test_a_probe_is_a_task_that_leaves_no_trace():
    heartbeat.queue_probe()
    [queued] = OrmQ.objects.all()
    task = queued.task
    assert task["func"] == "maxclaw.heartbeat.answer_probe"
    assert task["save"] is False


def test_only_workers_listen_for_tasks():
    uid = "maxclaw.pulse"
    for signal in (pre_execute, post_execute_in_worker):
        assert not [key for key, *_ in signal.receivers if key[0] == uid]
