"""The pages beside the chat page: the programmers' one, the import, and those that say that something is wrong."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser import PHONE
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.browser.conftest import DESKTOP

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOOKS: dict[str, dict[str, Any]] = {
    "desktop, light, English": {**DESKTOP, "color_scheme": "light"},
    "phone, dark, Chinese": {**PHONE, "color_scheme": "dark", "locale": "zh-CN"},
}


def check(page: Page) -> None:
    assert_accessible(page)
    assert_fits(page)


@pytest.mark.parametrize("look", LOOKS)
def test_every_other_page_is_accessible_and_fits(server, open_tab, alice, monkeypatch, look):
    if "Chinese" in look:
        alice.language = "zh-hans"
        alice.save()
    tab = open_tab(server, alice, **LOOKS[look])
    tab.forgive = lambda problem: problem.startswith("Failed to load resource")
    page = tab.page
    page.goto(server.url + "/api/")
    expect(page.locator(".opblock").first).to_be_visible()
    for method in ("get", "post", "patch"):
        page.locator(f".opblock-{method} .opblock-summary-control").first.click()
    expect(page.locator(".opblock-body")).to_have_count(3)
    page.mouse.move(0, 0)
    page.wait_for_timeout(400)  # what unfolds has its colours only afterwards
    check(page)

    page.goto(server.url + "/import/")
    check(page)
    assert page.goto(server.url + "/nothing/").status == 404
    check(page)
    assert page.goto(server.url + "/admin/", wait_until="commit").status == 403
    check(page)
    # A form of another login, as one that stood open for long.
    page.goto(server.url + "/account/")
    page.locator("form[action$='/export/'] [name=csrfmiddlewaretoken]").evaluate("node => { node.value = 'old'; }")
    page.locator("form[action$='/export/'] button").click()
    expect(page.locator("h1")).to_have_text("此表单已过期。" if "Chinese" in look else "This form is too old.")
    check(page)

    def fail(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("It is broken.")

    monkeypatch.setattr("chat.pages.conversations", fail)
    assert page.goto(server.url + "/").status == 500
    check(page)
