"""Scope and category on the page: chosen for a new conversation, made stricter with the consequences said, shown."""

import pytest
from playwright.sync_api import expect

from llm.emulator.client import text
from tests.browser import PHONE
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.browser.hands import Keyboard, answers
from threads.lifecycle import create_thread
from threads.models import Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def badges(page):
    return page.locator("#badges .badge")


def test_a_new_conversation_begins_at_the_level_that_was_chosen(open_chat, alice, emulator):
    emulator.answer(text("Aye."))
    page = open_chat(alice)
    page.get_by_role("button", name="Level: open").click()
    expect(page.get_by_role("menuitemradio", name="isolated")).to_contain_text("its branches and its tasks alone")
    assert_accessible(page)
    page.get_by_role("menuitemradio", name="isolated").click()
    # With the keyboard, too.
    hand = Keyboard(page)
    hand.press(page.get_by_role("button", name="Level: isolated"))
    hand.choose("work")
    expect(page.get_by_role("button", name="Level: isolated · work")).to_be_focused()
    page.locator("#words-box").fill("Hello")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text("Aye.")
    expect(badges(page)).to_have_text(["isolated", "work"])
    expect(page.locator('#conversations a[aria-current="page"] .badge')).to_have_text(["isolated", "work"])
    thread = Thread.objects.get(owner=alice, kind="web")
    assert (thread.scope, thread.category) == ("isolated", "work")
    # The next one begins open again.
    page.locator("a[data-new]").last.click()
    expect(page.get_by_role("button", name="Level: open")).to_be_visible()


def test_becoming_stricter_says_what_that_means_first(open_chat, alice):
    thread = create_thread(alice, title="Boats")
    task = create_thread(alice, title="Survey", kind="task", parent=thread)
    page = open_chat(alice, thread.channel)
    page.locator("#whole").click()
    page.get_by_role("menuitem", name="Level").click()
    dialog = page.get_by_role("dialog", name="Level")
    stricter = dialog.get_by_role("button", name="Make it stricter")
    expect(stricter).to_be_disabled()
    dialog.get_by_label("isolated").check()
    consequences = dialog.locator(".consequences li")
    expect(consequences).to_contain_text(
        [
            "branches and its tasks alone",
            "confirm each time",
            "1 task or branch",
            "stays where it is",
            "cannot be taken back",
        ]
    )
    dialog.get_by_label("Category").select_option("work")
    expect(dialog.locator(".consequences")).to_contain_text(
        "Only models that may read “work” answer in it: emulator-main."
    )
    assert_accessible(page)
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    thread.refresh_from_db()
    assert (thread.scope, thread.category) == ("open", "")
    # With the keyboard alone.
    hand = Keyboard(page)
    hand.press(page.locator("#whole"))
    hand.choose("Level")
    hand.reach(dialog.get_by_label("isolated"))
    page.keyboard.press("Space")
    expect(dialog.get_by_label("isolated")).to_be_checked()
    hand.reach(dialog.get_by_label("Category"))
    page.keyboard.type("work")
    hand.press(stricter)
    expect(badges(page)).to_have_text(["isolated", "work"])
    expect(page.locator("#toasts")).to_contain_text("“Boats” is stricter now.")
    expect(page.locator("#conversations li", has_text="Survey").locator(".badge")).to_have_text(
        ["task", "isolated", "work"]
    )
    task.refresh_from_db()
    assert (task.scope, task.category) == ("isolated", "work")
    page.locator("#whole").click()
    page.get_by_role("menuitem", name="Level").click()
    expect(dialog).to_contain_text("as strict as it can be")
    expect(stricter).to_be_disabled()
    page.keyboard.press("Escape")
    expect(page.locator("#whole")).to_be_focused()


def test_another_tab_shows_the_new_level_at_once(open_chat, alice):
    from chat.conversations import narrow_conversation

    thread = create_thread(alice, title="Boats")
    page = open_chat(alice, thread.channel)
    expect(page.locator("#title")).to_have_text("Boats")
    narrow_conversation(alice, thread.channel, scope="isolated", category=None)
    expect(badges(page)).to_have_text(["isolated"])


def test_the_level_of_a_new_conversation_fits_a_phone(open_chat, alice):
    page = open_chat(alice, color_scheme="dark", **PHONE)
    page.get_by_role("button", name="Level: open").tap()
    page.get_by_role("menuitemradio", name="confidential").tap()
    expect(page.get_by_role("button", name="Level: open · confidential")).to_be_visible()
    assert_accessible(page)
    assert_fits(page)
