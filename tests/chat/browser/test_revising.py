"""Going back, asking again, editing, branching and taking back on the page: by mouse, by keyboard, by touch."""

import pytest
from playwright.sync_api import expect

from llm.emulator import client as emulated
from tests.chat.browser.hands import Keyboard, answers, words
from tests.chat.records import say
from threads.lifecycle import create_thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def message(page, text):
    return page.locator("#timeline > .message[data-message]", has_text=text)


def test_a_conversation_is_revised(open_hand, alice, emulator):
    thread = create_thread(alice, title="Boats")
    for text, role in (("one", "user"), ("first", "assistant"), ("two", "user"), ("second", "assistant")):
        say(thread, text, role)
    hand = open_hand(alice, thread.channel)
    page = hand.page

    # Another answer to the same words.
    emulator.answer(emulated.text("better"))
    hand.message_menu(message(page, "second"))
    hand.choose("Answer again")
    expect(answers(page)).to_have_text(["first", "better"])
    fold = page.locator(".rewound").last
    expect(fold.locator("summary")).to_have_text("2 messages taken out of the conversation")
    expect(words(page)).to_have_text(["one", "two"])

    # Back to an earlier message: what followed is folded, can be read, and comes back.
    hand.message_menu(message(page, "first"))
    hand.choose("Go back to here")
    expect(answers(page)).to_have_text(["first"])
    expect(fold.locator("summary")).to_have_text("4 messages taken out of the conversation")
    hand.press(fold.locator("summary"))
    expect(fold.locator(".bubble").first).to_have_text("two")
    expect(fold.locator(".message-actions")).to_have_count(0)
    hand.press(fold.locator(".undo-rewind"))
    expect(answers(page)).to_have_text(["first", "better"])
    expect(words(page)).to_have_text(["one", "two"])

    # Other words in place of one's own.
    emulator.answer(emulated.text("third"))
    hand.message_menu(message(page, "one"))
    hand.choose("Edit and resend")
    box = page.locator(".edit-box")
    expect(box).to_be_focused()
    expect(box).to_have_value("one")
    page.keyboard.press("Escape")
    expect(words(page).first).to_have_text("one")
    hand.message_menu(message(page, "one"))
    hand.choose("Edit and resend")
    box.fill("three")
    hand.press(page.locator(".edit-form").get_by_role("button", name="Send"))
    expect(answers(page)).to_have_text(["third"])
    expect(words(page)).to_have_text(["three"])

    # A branch of its own.
    hand.message_menu(message(page, "third"))
    hand.choose("Branch from here")
    expect(page.locator(".toast")).to_contain_text("This is a branch of")
    expect(page).not_to_have_url(f"/c/{thread.channel}/")
    expect(words(page)).to_have_text(["three"])
    emulator.answer(emulated.text("in the branch"))
    hand.write("and now")
    expect(answers(page)).to_have_text(["third", "in the branch"])


def test_queued_words_are_taken_back_and_a_turn_is_stopped(open_hand, alice, emulator):
    emulator.answer(emulated.text("word " * 300), pace="10:20")
    hand = open_hand(alice)
    page = hand.page
    hand.write("Talk")
    expect(page.locator(".prose.growing")).to_contain_text("word word")
    hand.write("Wait with this")
    hand.press(page.locator(".take-back"))
    expect(page.locator("[data-fate]")).to_have_count(0)
    expect(page.locator("#words-box")).to_have_value("Wait with this")
    expect(page.locator("#words-box")).to_be_focused()
    if isinstance(hand, Keyboard):
        page.keyboard.press("Escape")
    else:
        hand.press(page.locator("#stop"))
    expect(page.locator('.from-assistant[data-state="interrupted"] .prose')).to_contain_text("word word")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator("#words-box")).to_be_focused()


def test_the_last_words_are_edited_from_the_empty_box(open_chat, alice, emulator):
    thread = create_thread(alice)
    say(thread, "teh boat")
    say(thread, "a boat", "assistant")
    page = open_chat(alice, thread.channel)
    expect(words(page)).to_have_text(["teh boat"])
    page.locator("#words-box").focus()
    emulator.answer(emulated.text("the boat, then"))
    page.keyboard.press("ArrowUp")
    expect(page.locator(".edit-box")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text("the boat")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text(["the boat, then"])
    expect(words(page)).to_have_text(["the boat"])


def test_what_is_refused_is_said_and_nothing_is_lost(open_chat, alice, emulator, settings):
    thread = create_thread(alice)
    say(thread, "one")
    say(thread, "first", "assistant")
    page = open_chat(alice, thread.channel, refusals=True)
    expect(words(page)).to_have_text(["one"])
    page.locator("#words-box").focus()
    page.keyboard.press("ArrowUp")
    settings.MESSAGE_MAX_CHARS = 10
    page.locator(".edit-box").fill("far too many words")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("at most 10 are accepted")
    expect(page.locator(".edit-box")).to_have_value("far too many words")
    expect(page.locator(".rewound")).to_have_count(0)


def test_a_failed_turn_is_tried_again_from_its_notice(open_hand, alice, emulator):
    emulator.fault("status", status=400, times=1)
    hand = open_hand(alice)
    page = hand.page
    hand.write("Hello")
    emulator.answer(emulated.text("Now it went well."))
    hand.press(page.locator(".notice .again"))
    expect(answers(page)).to_have_text(["Now it went well."])
    expect(words(page)).to_have_text(["Hello"])
