"""Where the reader is in a conversation: left there, whatever comes above or below."""

import pytest
from playwright.sync_api import expect

from tests.chat.records import say, say_many
from threads.lifecycle import create_thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# What is drawn in the frame in which the reader scrolls, before the browser tells of it.
DRAWN_BEFORE_TOLD = """async (scroller) => {
    const { Follower } = await import("/static/chat/scrolling.js");
    const button = document.createElement("button");
    const follower = new Follower(scroller, button, () => {});
    follower.follow();
    scroller.scrollTop = 100;
    follower.around(() => scroller.firstElementChild.append(document.createElement("p")));
    return [scroller.scrollTop, button.hidden];
}"""


def test_earlier_messages_load_without_moving_what_is_read(open_chat, alice):
    thread = create_thread(alice)
    say_many(thread, 150)
    page = open_chat(alice, thread.channel)
    expect(page.locator(".bubble").last).to_have_text("message 149")
    expect(page.locator(".bubble").first).to_have_text("message 50")
    read = page.locator(".bubble", has_text="message 53")
    page.locator("#scroller").evaluate("node => { node.scrollTop = 400; }")
    before = read.bounding_box()
    expect(page.locator(".bubble").first).to_have_text("message 0")
    after = read.bounding_box()
    assert before and after and abs(after["y"] - before["y"]) < 60
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


def test_a_reader_who_scrolled_up_is_left_there_and_can_go_to_the_end(open_chat, alice):
    thread = create_thread(alice)
    say_many(thread, 60)
    page = open_chat(alice, thread.channel)
    expect(page.locator(".bubble").last).to_be_in_viewport()
    page.locator("#scroller").evaluate("node => { node.scrollTop = 100; }")
    say(thread, "news")
    expect(page.locator("#to-latest")).to_be_visible()
    expect(page.locator(".bubble").last).to_have_text("news")
    assert page.locator("#scroller").evaluate("node => node.scrollTop") == 100
    page.locator("#to-latest").click()
    expect(page.locator(".bubble").last).to_be_in_viewport()
    say(thread, "more news")
    expect(page.locator(".bubble").last).to_have_text("more news")
    expect(page.locator(".bubble").last).to_be_in_viewport()
    assert page.locator("#scroller").evaluate(DRAWN_BEFORE_TOLD) == [100, False]
