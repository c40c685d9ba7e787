"""The machine's Chromium, driven by Playwright: fixtures for tests marked `browser`."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser_checks import watch

PATIENCE_MS = 30_000
expect.set_options(timeout=PATIENCE_MS)
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def chromium_browser(chromium: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """One browser for one test: Playwright's loop holds the thread it runs in, where other tests need their own."""
    # With that loop in this thread Django would take the test's own queries for asynchronous code.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()
        # Under that loop the test's queries had a connection of their own.
        connections.close_all()


class Tab:
    """One page of one person, which collects what went wrong in it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.problems = watch(self.page, url)
        self.forgive: Callable[[str], bool] = lambda _problem: False


@pytest.fixture
def open_tab(chromium_browser: Browser) -> Iterator[Any]:
    """Opens tabs: `open_tab(server, user=None, **context_options) -> Tab`; signed in when a user is given.

    After the test no tab may have had an error, a warning or a request that left the server; a test that provokes one
    empties `tab.problems`.
    """
    tabs: list[Tab] = []

    def open_one(server: Any, user: Any = None, **options: Any) -> Tab:
        context = chromium_browser.new_context(**{"locale": "en-GB", **options})
        if user is not None:
            context.add_cookies([session_cookie(user, server.url)])
        tab = Tab(context, server.url)
        tabs.append(tab)
        return tab

    yield open_one
    for tab in tabs:
        tab.context.close()
    problems = [problem for tab in tabs for problem in tab.problems if not tab.forgive(problem)]
    assert not problems, "\n".join(problems)


def session_cookie(user: Any, url: str) -> Any:
    """The cookie of a fresh login, without its page."""
    return {"name": settings.SESSION_COOKIE_NAME, "value": signed_in_session(user).session_key, "url": url}


def signed_in_session(user: Any) -> SessionStore:
    """A session in which the user is signed in."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return session
