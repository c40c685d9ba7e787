"""The three health pages: for everybody, without a session, saying no more than they must."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from maxclaw import heartbeat
from maxclaw.models import Heartbeat


def test_live_answers_without_touching_the_database(client):
    assert client.get("/health/live").json() == {"live": True}


@pytest.mark.django_db
def test_ready_once_every_migration_is_applied(client, take_back_a_migration):
    assert client.get("/health/ready").status_code == 200
    take_back_a_migration()
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["reason"] == "1 migrations are missing"


@pytest.mark.django_db
def test_work_follows_the_newest_heartbeat_of_the_workers(client):
    assert client.get("/health/work").status_code == 503
    heartbeat.beat("worker:a:1")
    assert client.get("/health/work").json()["working"] is True
    Heartbeat.objects.update(beat_at=Now() - timedelta(seconds=heartbeat.STALE_SECONDS + 10))
    answer = client.get("/health/work")
    assert answer.status_code == 503
    assert answer.json()["seconds_since_heartbeat"] > heartbeat.STALE_SECONDS


@pytest.mark.parametrize("page", ["live", "ready", "work"])
@pytest.mark.django_db
def test_they_are_never_cached_and_only_read(client, page):
    assert "no-store" in client.get(f"/health/{page}")["Cache-Control"]
    assert client.post(f"/health/{page}").status_code == 405
