"""What one does to a whole conversation on the page, its model and its meter: by mouse, by keyboard, by touch."""

import re

import pytest
from playwright.sync_api import expect

from llm.emulator import client as emulated
from tests.browser import PHONE
from tests.chat.browser.hands import Keyboard, answers, words
from tests.chat.records import say
from threads.lifecycle import create_thread
from threads.models import Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_conversation_is_renamed_archived_restored_deleted_and_brought_back(open_hand, alice):
    boats, trains = create_thread(alice, title="Boats"), create_thread(alice, title="Trains")
    say(boats, "about boats")
    hand = open_hand(alice, trains.channel)
    page = hand.page
    rows = page.locator("#conversations a .name")
    toast = page.locator(".toast")

    if not isinstance(hand, Keyboard):  # whose way is Control+K, as below
        hand.to_list()
        hand.press(page.locator("#search"))
        page.keyboard.type("boat")
        expect(rows).to_have_text(["Boats"])
        page.keyboard.press("Escape")
    hand.row_menu("Boats")
    hand.choose("Rename")
    line = page.get_by_role("textbox", name="Title")
    expect(line).to_be_focused()
    expect(line).to_have_value("Boats")
    line.fill("Ships and boats")
    page.keyboard.press("Enter")
    expect(hand.row("Ships and boats")).to_have_count(1)

    hand.row_menu("Ships and boats")
    hand.choose("Archive")
    expect(toast).to_contain_text("“Ships and boats” is archived.")
    expect(hand.row("Ships and boats")).to_have_count(0)
    hand.press(page.locator("#archived"))
    expect(rows).to_have_text(["Ships and boats"])
    hand.row_menu("Ships and boats")
    hand.choose("Restore")
    expect(page.locator("#title")).to_have_text("Ships and boats")
    expect(words(page)).to_have_text(["about boats"])
    expect(page.locator("#archived")).to_have_attribute("aria-pressed", "false")
    hand.to_list()
    expect(hand.row("Trains")).to_have_count(1)

    hand.row_menu("Ships and boats")
    hand.choose("Delete")
    expect(toast).to_contain_text("was deleted")
    expect(hand.row("Ships and boats")).to_have_count(0)
    expect(page.locator(".welcome")).to_be_attached()
    expect(toast.locator(".undo")).to_be_focused()
    hand.press(toast.locator(".undo"))
    expect(page.locator("#title")).to_have_text("Ships and boats")
    expect(words(page)).to_have_text(["about boats"])
    assert Thread.objects.get(pk=boats.pk).deleted is None
    if page.locator("#open-drawer").is_visible():
        expect(page.locator("#sidebar")).to_be_hidden()


def test_the_main_conversation_offers_no_end_of_itself(open_chat, alice):
    main = Thread.objects.get(owner=alice, kind="main")
    page = open_chat(alice, main.channel)
    expect(page.locator("#title")).to_have_text("Main")
    page.locator("#whole").click()
    expect(page.get_by_role("menuitem")).to_have_text(["Rename"])
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(page.locator("#whole")).to_be_focused()


def test_keys_in_the_list_rename_and_delete(open_chat, alice):
    create_thread(alice, title="Boats")
    page = open_chat(alice)
    page.keyboard.press("Control+k")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#conversations a", has_text="Boats")).to_be_focused()
    page.keyboard.press("F2")
    page.get_by_role("textbox", name="Title").fill("Ships")
    page.keyboard.press("Enter")
    expect(page.locator("#conversations a", has_text="Ships")).to_be_focused()
    page.keyboard.press("Delete")
    expect(page.locator(".toast .undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Ships")


def test_the_meter_and_the_model_are_told_and_picked(open_hand, alice, emulator):
    emulator.answer(emulated.text("Aye."))
    hand = open_hand(alice, create_thread(alice).channel)
    page = hand.page
    meter = page.locator("#meter")
    expect(meter).to_have_text("–")
    hand.write("Hello")
    expect(answers(page)).to_have_text(["Aye."])
    expect(meter).to_have_text(re.compile(r"^[1-9]%$"))
    hand.press(meter)
    panel = page.get_by_role("dialog", name="Context and cost")
    expect(panel.locator("dd").nth(0)).to_contain_text(re.compile(r"of 100,000 tokens \([1-9]%\)"))
    expect(panel.locator("dd").nth(1)).to_have_text("emulator-main")
    expect(panel.locator("dd").nth(2)).to_contain_text("%")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(meter).to_be_focused()
    hand.press(page.locator("#model"))
    expect(page.get_by_role("menuitemradio", checked=True)).to_contain_text("Automatic")
    hand.choose("emulator-main")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(page.locator("#model")).to_have_attribute("data-picked", "emulator-main")
    hand.press(page.locator("#model"))
    expect(page.get_by_role("menuitemradio", checked=True)).to_have_text("emulator-main")
    page.keyboard.press("Escape")
    assert Thread.objects.get(owner=alice, kind="web").model == "emulator-main"


def test_calls_without_a_price_are_said(open_chat, alice, emulator, settings):
    emulator.register_model("local-model")
    settings.ANTHROPIC_BASE_URL, settings.MAXCLAW_MODEL = emulator.base_url, "local-model"
    emulator.answer(emulated.text("Aye."))
    page = open_chat(alice)
    page.locator("#words-box").fill("Hello")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text(["Aye."])
    expect(page.locator("#model")).to_have_text("local-model")
    page.locator("#meter").click()
    expect(page.locator("#meter-panel")).to_contain_text("unknown")
    expect(page.locator("#meter-panel")).to_contain_text("Calls without a known price: 1.")


def test_a_renewed_context_is_marked_with_its_summary_behind_it(open_hand, alice, emulator):
    emulator.answer(emulated.text("I remember: the boat is red."))
    hand = open_hand(alice)
    page = hand.page
    hand.write("The boat is red.")
    expect(answers(page)).to_have_text(["I remember: the boat is red."])
    hand.press(page.locator("#meter"))
    hand.press(page.get_by_role("button", name="Summarise and go on fresh"))
    mark = page.locator(".renewal")
    expect(mark).to_contain_text("The context was renewed")
    expect(page.locator(".toast")).to_have_count(0, timeout=3_000)  # it lay over the mark
    hand.press(mark.locator("summary"))
    expect(mark.locator(".summary-text")).to_contain_text("boat")
    expect(mark.locator(".summary-text")).to_be_in_viewport(ratio=0.9)
    expect(page.locator("#stop")).to_be_hidden()


def test_shortcuts_are_listed_and_lead_where_they_say(open_chat, alice):
    thread = create_thread(alice, title="Boats")
    page = open_chat(alice, thread.channel)
    expect(page.locator("#title")).to_have_text("Boats")
    page.keyboard.press("Control+/")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("?")
    expect(page.locator("#search")).to_have_value("?")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Escape")
    expect(page.locator("#words-box")).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    expect(page.locator(".welcome")).to_be_visible()
    page.locator("#user-menu summary").click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


def test_the_drawer_keeps_out_of_the_way_and_takes_the_focus(open_chat, alice, emulator):
    create_thread(alice, title="Boats")
    page = open_chat(alice, **PHONE, reduced_motion="no-preference")  # it moves, and takes it while it does
    page.locator("#open-drawer").tap()
    page.get_by_role("link", name="New conversation").tap()
    expect(page.locator("#sidebar")).to_be_hidden()
    page.locator("#open-drawer").tap()
    expect(page.locator("#close-drawer")).to_be_focused()
    page.locator("#user-menu summary").tap()
    expect(page.get_by_role("link", name="Your account")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Your account")).to_be_hidden()
    expect(page.locator("#sidebar")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator("#open-drawer")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.press("Shift+Escape")
    expect(page.locator("#sidebar")).to_be_hidden()
    expect(page.locator("#words-box")).to_be_focused()
