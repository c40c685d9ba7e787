"""Who may show the chat page in a frame: the origins that the configuration names, and that page alone."""

import pytest

from threads.lifecycle import create_thread

pytestmark = pytest.mark.django_db

DESK = "https://desk.example.org"
OTHERS = ("/login/", "/account/", "/import/", "/api/threads/", "/admin/login/")


@pytest.fixture
def page(client, alice):
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    return client


def frames(answer) -> tuple[str | None, str]:
    policy = answer.headers["Content-Security-Policy"]
    ancestors = next(part.strip() for part in policy.split(";") if "frame-ancestors" in part)
    return answer.headers.get("X-Frame-Options"), ancestors.removeprefix("frame-ancestors ")


def test_by_itself_nobody_may(page, alice):
    for address in ("/", f"/c/{create_thread(alice).channel}/", *OTHERS):
        assert frames(page.get(address)) == ("DENY", "'none'"), address


def test_the_origins_that_are_named_may_show_the_chat_page_and_no_other(page, alice, settings):
    settings.EMBED_ORIGINS = [DESK, "http://127.0.0.1:9000"]
    for address in ("/", f"/c/{create_thread(alice).channel}/"):
        assert frames(page.get(address)) == (None, f"{DESK} http://127.0.0.1:9000"), address
    for address in OTHERS:
        assert frames(page.get(address)) == ("DENY", "'none'"), address


def test_the_page_knows_whom_its_bridge_listens_to(page, settings):
    settings.EMBED_ORIGINS = [DESK]
    assert page.get("/").context["page"]["embedOrigins"] == [DESK]


def test_the_rest_of_the_policy_stays(page, settings):
    closed = page.get("/").headers["Content-Security-Policy"]
    settings.EMBED_ORIGINS = [DESK]
    opened = page.get("/").headers["Content-Security-Policy"]
    assert opened.replace(DESK, "'none'") == closed
