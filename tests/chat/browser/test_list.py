"""The list of conversations: going from one to another, searching, pages, a drawer on a phone."""

import pytest
from playwright.sync_api import expect

from agent.conversations import delete as delete_conversation
from chat.conversations import create_conversation
from llm.emulator import client as emulated
from maxclaw import clock
from tests.browser import PHONE
from tests.chat.browser.hands import answers
from tests.chat.records import say
from threads.lifecycle import create_thread
from threads.models import Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_going_between_conversations_and_back_keeps_drafts_and_places(open_chat, alice):
    boats, trains = create_thread(alice, title="Boats"), create_thread(alice, title="Trains")
    say(boats, "about boats")
    say(trains, "about trains")
    page = open_chat(alice, boats.channel)
    page.locator("#words-box").fill("half a thought")
    page.get_by_role("link", name="Trains").click()
    expect(page.locator(".bubble")).to_have_text("about trains")
    expect(page.locator("#words-box")).to_have_value("")
    page.go_back()
    expect(page.locator(".bubble")).to_have_text("about boats")
    expect(page.locator("#words-box")).to_have_value("half a thought")
    page.reload()
    expect(page.locator("#words-box")).to_have_value("half a thought")
    page.get_by_role("link", name="New conversation").click()
    expect(page.locator(".welcome")).to_be_visible()


def test_titles_are_searched_and_more_rows_come_by_pages(open_chat, alice):
    threads = [create_thread(alice, title=f"Conversation {number}") for number in range(130)]
    page = open_chat(alice)
    links = page.locator("#conversations a[data-channel]")
    search = page.get_by_label("Search titles")
    more = page.get_by_role("button", name="Show more")
    # The main conversation is the oldest here, and stands first.
    expect(links).to_have_count(61)
    expect(links.first).to_have_text("Main")
    more.press("Enter")
    expect(links).to_have_count(121)
    expect(links.nth(61)).to_be_focused()
    # What is deleted elsewhere goes from any page, and what is new pushes no row out of sight.
    delete_conversation(alice, threads[30].channel)
    expect(page.locator("#conversations a", has_text="Conversation 30")).to_have_count(0)
    create_conversation(alice, title="New one")
    expect(links.nth(1)).to_have_text("New one")
    expect(links).to_have_count(121)
    expect(links.last).to_have_text("Conversation 10")
    more.press("Enter")
    expect(links).to_have_count(131)
    expect(more).to_have_count(0)
    # By the keyboard alone: into the field, into the list, back, and out.
    page.keyboard.press("Control+k")
    page.keyboard.type("conversation 12")
    expect(links).to_have_count(11)
    page.keyboard.press("ArrowDown")
    expect(links.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(search).to_be_focused()
    search.fill("nowhere")
    expect(page.locator("#conversations .empty")).to_have_text("No title contains “nowhere”.")
    page.keyboard.press("Escape")
    expect(links).to_have_count(131)


def test_what_was_deleted_stands_by_pages_with_what_was_put_away(open_chat, alice):
    made = [create_thread(alice, title=f"Conversation {number}") for number in range(63)]
    Thread.objects.filter(pk__in=[thread.pk for thread in made]).update(deleted=clock.now())
    page = open_chat(alice)
    page.locator("#archived").click()
    back = page.locator(".bring-back")
    expect(back).to_have_count(60)
    page.get_by_role("button", name="Show more").press("Enter")
    expect(back).to_have_count(63)
    expect(back.nth(60)).to_be_focused()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Conversation 2")
    assert Thread.objects.get(pk=made[2].pk).deleted is None


def test_on_a_phone_the_list_is_a_drawer(open_chat, alice, emulator):
    thread = create_thread(alice, title="Boats")
    create_thread(alice, title="Trains")
    page = open_chat(alice, **PHONE)
    expect(page.get_by_role("link", name="Boats")).to_be_hidden()
    page.get_by_role("button", name="Show the conversations").tap()
    page.locator("#search").tap()
    page.keyboard.insert_text("boa")
    expect(page.locator("#conversations .name")).to_have_text(["Boats"])
    page.get_by_role("link", name="Boats").tap()
    expect(page.locator("#title")).to_have_text("Boats")
    expect(page.get_by_role("link", name="Boats")).to_be_hidden()
    page.get_by_role("button", name="Show the conversations").tap()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Boats")).to_be_hidden()
    emulator.answer(emulated.text("```\n" + "wide " * 60 + "\n```\n\nend"))
    page.locator("#words-box").fill("Hello")
    page.get_by_role("button", name="Send").tap()
    expect(answers(page)).to_contain_text("end")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert thread.channel in page.url
