"""The machine's Chromium, driven by Playwright: fixtures for tests marked `browser`."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import connections
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.browser_checks import watch

PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


class SharedBrowser:
    """One Chromium and its driver for all tests of a process: to start both takes longer than most tests do.

    Playwright's loop counts as running in its thread for as long as the driver lives, and then other tests could not
    run loops of their own: between tests that use it, it is laid aside.
    """

    def __init__(self, chromium: str) -> None:
        self._chromium = chromium
        self._playwright: Playwright | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._browser: Browser | None = None

    def take(self) -> Browser:
        """The browser, started if there is none, with its loop as the thread's."""
        if self._playwright is None:
            self._playwright = sync_playwright().start()
            self._loop = asyncio.get_running_loop()
        asyncio._set_running_loop(self._loop)
        if self._browser is None or not self._browser.is_connected():
            self._browser = self._playwright.chromium.launch(
                executable_path=self._chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
            )
        return self._browser

    def lay_aside(self) -> None:
        """The thread has no loop any more."""
        asyncio._set_running_loop(None)

    def stop(self) -> None:
        """End the browser and its driver."""
        if self._playwright is not None:
            asyncio._set_running_loop(self._loop)
            self._playwright.stop()
            self._playwright = None


_shared = pytest.StashKey[SharedBrowser]()


@pytest.fixture
def chromium_browser(
    request: pytest.FixtureRequest, chromium: str, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Browser]:
    """The browser for one test, which opens contexts of its own in it and leaves none."""
    shared = request.config.stash.get(_shared, None)
    if shared is None:
        shared = request.config.stash[_shared] = SharedBrowser(chromium)
        request.config.add_cleanup(shared.stop)
    # With Playwright's loop in this thread Django would take the test's own queries for asynchronous code.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
    browser = shared.take()
    yield browser
    for context in browser.contexts:
        context.close()
    # Under that loop the test's queries had a connection of their own.
    connections.close_all()
    shared.lay_aside()


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
        context = chromium_browser.new_context(**{"locale": "en-GB", "reduced_motion": "reduce", **options})
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
