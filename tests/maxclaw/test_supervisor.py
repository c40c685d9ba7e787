"""What the supervisor decides: what counts as dead, how long to wait, what to say."""

from types import SimpleNamespace
from typing import Any

import pytest

from maxclaw import clock
from maxclaw.heartbeat import STALE_SECONDS
from maxclaw.preparation import Login
from maxclaw.supervisor import (
    BACK_OFF_MAX_SECONDS,
    SETTLED_SECONDS,
    WEB_SILENT_SECONDS,
    Child,
    Plan,
    Supervisor,
    web_arguments,
)


def supervisor(**plan: Any) -> tuple[Supervisor, list[str]]:
    said: list[str] = []
    return Supervisor(Plan(host="127.0.0.1", port=8000, **plan), said.append), said


def child(name: str, lived: float) -> Child:
    return Child(name, [], {}, started_at=clock.monotonic() - lived)


def test_a_child_that_keeps_failing_is_started_ever_more_slowly_and_a_settled_one_at_once():
    failing = child("web", 0)
    pauses = [failing.failed() for _ in range(8)]
    assert pauses[:4] == [0.5, 1.5, 3.5, 7.5]
    assert pauses[-1] == BACK_OFF_MAX_SECONDS
    failing.started_at = clock.monotonic() - SETTLED_SECONDS - 1
    assert failing.failed() == 0.5


def test_a_web_server_counts_as_dead_after_a_minute_without_an_answer():
    one, _ = supervisor()
    web = child("web", WEB_SILENT_SECONDS + 10)
    one.web_watch = SimpleNamespace(last_answer=None)  # type: ignore[assignment]
    assert one._hangs(web)
    one.web_watch = SimpleNamespace(last_answer=clock.monotonic() - 5)  # type: ignore[assignment]
    assert not one._hangs(web)
    one.web_watch = SimpleNamespace(last_answer=clock.monotonic() - WEB_SILENT_SECONDS - 1)  # type: ignore[assignment]
    assert one._hangs(web)
    assert not one._hangs(child("web", 5)), "a new process has its own minute"


def test_workers_count_as_dead_after_silence_that_the_database_vouches_for():
    one, _ = supervisor()
    worker = child("worker", STALE_SECONDS + 10)
    silent_since = clock.monotonic() - STALE_SECONDS - 1
    one.worker_watch = SimpleNamespace(last_beat=silent_since, reachable=True)  # type: ignore[assignment]
    assert one._hangs(worker)
    one.worker_watch = SimpleNamespace(last_beat=silent_since, reachable=False)  # type: ignore[assignment]
    assert not one._hangs(worker), "nothing can be said while the database does not answer"
    one.worker_watch = SimpleNamespace(last_beat=clock.monotonic(), reachable=True)  # type: ignore[assignment]
    assert not one._hangs(worker)


@pytest.mark.parametrize("parts", [{}, {"web": False}, {"worker": False}])
def test_a_password_made_just_now_is_always_shown(parts):
    one, said = supervisor(**parts)
    one._introduce(Login("admin", "secret words"))
    assert "admin  secret words  (shown this once" in said[0]


def test_a_password_made_earlier_is_not_known_but_how_to_set_another_is():
    one, said = supervisor()
    one._introduce(Login("admin", None))
    assert "admin  (forgotten? python manage.py changepassword admin)" in said[0]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),  # noqa: S104 - shown, not bound
        ("::1", "http://[::1]:8000"),
    ],
)
def test_the_address_is_one_to_open_in_a_browser(host, address):
    assert Plan(host=host, port=8000).address == address


def test_forwarded_headers_are_believed_only_behind_a_proxy(settings):
    plan = Plan(host="127.0.0.1", port=8000)
    assert "--no-proxy-headers" in web_arguments(plan)
    settings.HTTPS = True
    assert "--proxy-headers" in web_arguments(plan)
