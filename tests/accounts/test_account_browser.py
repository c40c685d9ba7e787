"""Account pages in a browser: by mouse and by keyboard alone, on a desktop and on a phone, and accessible to all."""

import json

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from accounts.models import User
from tests.browser import PHONE, Tab
from tests.browser_checks import assert_accessible, assert_fits
from tests.conftest import PASSWORD
from tests.hands import Hand
from tests.threads.records import exchange, thread_of
from threads.models import Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
NEW_PASSWORD = "another horse battery"


def opened(open_tab, server, user, name, size, hand) -> tuple[Tab, Hand]:
    tab = open_tab(server, user, **size)
    tab.page.goto(server.url + reverse(name))
    return tab, Hand(tab.page, hand)


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("hand", ["mouse", "keyboard"])
def test_everything_that_one_does_with_an_account(server, alice, open_tab, size, hand):
    """Settings, password, the copy of everything, the end of everything: one person after another, in one browser."""
    exchange(thread_of(alice), "my words", "漢字")
    tab, hand = opened(open_tab, server, alice, "account", size, hand)
    choose_zone_and_language(tab.page, hand, alice)
    change_password(tab.page, hand, alice)
    download(tab.page, hand)
    erase(tab.page, hand)


def choose_zone_and_language(page: Page, hand: Hand, alice: User) -> None:
    box = page.get_by_role("combobox", name="Time zone")
    hand.write("#id_time_zone-search", "shang")
    choice = page.get_by_role("option", name="Shanghai, China")
    expect(choice).to_be_visible()
    if hand.keyboard:
        page.keyboard.press("Enter")
    else:
        choice.click()
    expect(box).to_have_value("Shanghai, China · Asia/Shanghai · UTC+08:00")
    expect(page.get_by_role("listbox")).to_be_hidden()
    for language, saved in (("zh-hans", "已保存。"), ("en", "Saved.")):
        if hand.keyboard:
            hand.reach("#id_language")
            page.keyboard.press("ArrowDown" if language == "zh-hans" else "ArrowUp")
        else:
            page.locator("#id_language").select_option(language)
        hand.press("button.primary")
        expect(page.locator(".notice")).to_have_text(saved)
        alice.refresh_from_db()
        assert (alice.time_zone, alice.language) == ("Asia/Shanghai", language)


def change_password(page: Page, hand: Hand, alice: User) -> None:
    hand.press("a[href$='/password/']")
    for old in ("wrong", PASSWORD):
        hand.write("#id_old_password", old)
        hand.write("#id_new_password1", NEW_PASSWORD)
        hand.write("#id_new_password2", NEW_PASSWORD)
        hand.press("button.primary")
        if old == "wrong":
            expect(page.get_by_text("This is not your password.")).to_be_visible()
            expect(page.locator("#id_old_password")).to_have_attribute("aria-invalid", "true")
            assert_accessible(page)
    expect(page.locator(".notice")).to_contain_text("Your password was changed.")
    alice.refresh_from_db()
    assert alice.check_password(NEW_PASSWORD)


def download(page: Page, hand: Hand) -> None:
    with page.expect_download() as download:
        hand.press("form[action$='/export/'] button")
    assert download.value.suggested_filename.startswith("maxclaw-alice-")
    lines = [json.loads(line) for line in download.value.path().read_text().splitlines()]
    assert {"my words", "漢字"} <= {line.get("text") for line in lines}


def erase(page: Page, hand: Hand) -> None:
    hand.press("a[href$='/erase/']")
    expect(page.get_by_text("2 conversations")).to_be_visible()
    for name in ("alica", "alice"):
        hand.write("#id_username", name)
        hand.write("#id_password", NEW_PASSWORD)
        hand.press("button.danger")
        if name == "alica":
            expect(page.get_by_text("This is not the name of your account.")).to_be_visible()
            assert User.objects.filter(username="alice").exists()
    expect(page.get_by_role("heading", name="Everything was erased")).to_be_visible()
    assert not User.objects.exists()
    assert not Thread.objects.exists()


def test_the_search_of_time_zones(server, alice, open_tab):
    tab, hand = opened(open_tab, server, alice, "account", DESKTOP, "keyboard")
    page = tab.page
    box = page.get_by_role("combobox", name="Time zone")
    hand.write("#id_time_zone-search", "no such place")
    expect(page.get_by_text("No time zone is called that.").first).to_be_visible()
    page.keyboard.press("Enter")  # chooses nothing, and sends nothing
    page.keyboard.press("Escape")
    expect(box).to_have_value("UTC · UTC+00:00")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("sao paulo")  # without its accents
    expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(1)
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("new york")  # the zone's own name has an underscore
    expect(page.get_by_role("option", name="America/New_York")).to_be_visible()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("germany")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    active = box.get_attribute("aria-activedescendant")
    assert "Germany" in page.locator(f"#{active}").inner_text()
    assert_accessible(page)
    page.keyboard.press("Tab")  # leaving chooses nothing
    expect(box).to_have_value("UTC · UTC+00:00")


def test_the_devices_own_time_zone_is_offered(server, alice, open_tab):
    tab = open_tab(server, alice, timezone_id="Europe/Berlin")
    tab.page.goto(server.url + reverse("account"))
    tab.page.get_by_role("button", name="Use this device’s: Europe/Berlin").click()
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.locator(".notice")).to_have_text("Saved.")
    expect(tab.page.locator("#device-zone")).to_be_hidden()
    alice.refresh_from_db()
    assert alice.time_zone == "Europe/Berlin"


def test_settings_work_without_javascript(server, alice, open_tab):
    tab = open_tab(server, alice, java_script_enabled=False)
    tab.page.goto(server.url + reverse("account"))
    tab.page.get_by_label("Time zone").select_option("Asia/Tokyo")
    tab.page.get_by_role("button", name="Save").click()
    expect(tab.page.locator(".notice")).to_have_text("Saved.")
    alice.refresh_from_db()
    assert alice.time_zone == "Asia/Tokyo"


def test_the_chat_page_in_another_tab_says_that_one_is_signed_out(server, alice, open_tab):
    tab, hand = opened(open_tab, server, alice, "account-erase", DESKTOP, "mouse")
    chat = tab.context.new_page()
    chat.goto(server.url)
    expect(chat.locator(f"a[href='{reverse('account')}']")).to_have_text("Your account")
    expect(chat.locator("#connection")).to_have_attribute("data-state", "connected")
    hand.write("#id_username", "alice")
    hand.write("#id_password", PASSWORD)
    hand.press("button.danger")
    expect(tab.page.get_by_role("heading", name="Everything was erased")).to_be_visible()
    expect(chat.get_by_text("You are signed out.").first).to_be_visible()


def test_being_locked_out_is_said_on_an_accessible_page(server, alice, open_tab, settings):
    settings.AXES_FAILURE_LIMIT = 2
    tab = open_tab(server, **PHONE)
    page = tab.page
    for _index in range(2):
        page.goto(server.url + reverse("login"))
        page.get_by_label("Name").fill("alice")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("Too many failed attempts.")
    assert_accessible(page)
    assert_fits(page)
    assert all("429" in problem for problem in tab.problems), tab.problems
    tab.problems.clear()
