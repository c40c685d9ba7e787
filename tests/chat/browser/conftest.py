"""Pages of the chat in Chromium, and the hands that use them."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser import PHONE
from tests.chat.browser.hands import Hand, Keyboard, Mouse, Touch, connected

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture
def open_chat(server, open_tab):
    """Opens the chat page: `open_chat(user, channel="", **context_options) -> Page`, connected.

    `refusals=True`: the browser's own words about answers that are refusals are no problem.
    """

    def open_one(user: Any, channel: str = "", *, refusals: bool = False, **options: Any) -> Page:
        tab = open_tab(server, user, **{**DESKTOP, "permissions": CLIPBOARD, **options})
        if refusals:
            tab.forgive = lambda problem: problem.startswith("Failed to load resource")
        page: Page = tab.page
        page.goto(f"{server.url}/c/{channel}/" if channel else server.url)
        connected(page)
        return page

    return open_one


@pytest.fixture(params=["mouse", "keyboard", "phone", "keyboard on a phone"])
def open_hand(request, open_chat):
    """`open_hand(user, channel="") -> Hand`: a mouse at a desk, a keyboard and nothing else, fingers on a phone, and a
    keyboard alone on a screen of its size."""
    kind = {"mouse": Mouse, "phone": Touch}.get(request.param, Keyboard)

    def open_one(user: Any, channel: str = "") -> Hand:
        options = {"phone": PHONE, "keyboard on a phone": {"viewport": PHONE["viewport"]}}.get(request.param, {})
        hand: Hand = kind(open_chat(user, channel, **options))
        return hand

    return open_one
