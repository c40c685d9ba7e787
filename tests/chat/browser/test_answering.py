"""An answer on the page, from the words that ask for it to its end: streaming, tools, questions, refusals."""

import json
import re

import pytest
from playwright.sync_api import Locator, expect

from chat.frames import FRAME_MAX_BYTES
from llm.emulator import client as emulated
from tests.browser import PHONE
from tests.browser_checks import assert_fits
from tests.chat.browser.hands import answers, connected, write
from tests.chat.records import say
from tests.conftest import PASSWORD
from threads.lifecycle import create_thread
from threads.models import Message

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MARKDOWN = "Here is **bold** and code:\n\n```python\ndef f():\n    return 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"


def test_from_signing_in_to_an_answer_with_the_keyboard_alone(server, open_tab, alice, emulator):
    emulator.answer(emulated.thinking("A greeting."), emulated.text(MARKDOWN))
    page = open_tab(server).page
    page.goto(server.url)
    expect(page.locator("#id_username")).to_be_focused()
    page.keyboard.type("alice")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    connected(page)
    expect(page.locator(".banner")).to_contain_text("No model is configured.")
    expect(page.locator(".welcome")).to_be_visible()
    page.keyboard.type("Hello")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("there")
    page.keyboard.press("Enter")
    expect(page.locator(".from-user .bubble")).to_have_text("Hello\nthere")
    expect(answers(page).locator("strong")).to_have_text("bold")
    expect(answers(page).locator("pre .k").first).to_have_text("def")
    expect(answers(page).locator("td").first).to_have_text("1")
    page.locator("details.thinking summary").press("Enter")
    expect(page.locator(".thinking-text")).to_have_text("A greeting.")
    assert re.search(r"/c/[a-z0-9]{12}/$", page.url)
    expect(page.locator("#title")).to_have_text("Hello there")
    expect(page.locator('#conversations a[aria-current="page"]')).to_have_text("Hello there")
    expect(page).to_have_title("Hello there · MaxClaw")


def test_an_answer_grows_as_plain_text_and_becomes_markdown_when_it_is_whole(open_chat, alice, emulator):
    words = " ".join(f"word{number}" for number in range(60))
    emulator.answer(emulated.text(f"**bold** {words}"), pace="10:25")
    page = open_chat(alice)
    write(page, "Count")
    growing = page.locator(".prose.growing")
    expect(growing).to_contain_text("**bold** word0")
    length = len(growing.inner_text())
    assert length < len(words)
    page.wait_for_function(
        "length => (document.querySelector('.prose.growing')?.textContent.length ?? 0) > length", arg=length
    )
    expect(answers(page)).to_have_text(f"bold {words}")
    expect(answers(page).locator("strong")).to_have_text("bold")
    expect(growing).to_have_count(0)


def test_stop_ends_the_answer_and_what_was_said_stays(open_chat, alice, emulator):
    emulator.answer(emulated.text("word " * 200), pace="10:10")
    page = open_chat(alice)
    write(page, "Talk")
    expect(page.locator(".prose.growing")).to_contain_text("word word")
    page.get_by_role("button", name="Stop the answer").click()
    expect(page.locator(".state-line")).to_have_text("The answer was interrupted here.")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator('[data-state="interrupted"] .prose')).to_contain_text("word word")


def test_words_during_an_answer_are_shown_as_queued_until_they_are_read(open_chat, alice, emulator):
    emulator.answer(emulated.text("First."), hold="first")
    emulator.answer(emulated.text("Second."))
    page = open_chat(alice)
    write(page, "One")
    expect(page.locator(".working")).to_be_visible()
    write(page, "Two")
    expect(page.locator('[data-fate="queued"]')).to_contain_text("Two")
    emulator.release("first")
    expect(answers(page).last).to_have_text("Second.")
    expect(page.locator("[data-fate]")).to_have_count(0)
    assert page.locator(".from-user .bubble").all_inner_texts() == ["One", "Two"]

    # Words that stand in the conversation are on their way no more, however late the server says that it has them.
    left = page.evaluate("""async () => {
      const { Conversation } = await import("/static/chat/conversation.js");
      const one = new Conversation("elsewhere", { send() {} }, () => {});
      one.state = { event: 0, messages: [], queued: [], turn: null };
      const sent = one.add("Three");
      const item = { id: 1, key: sent.key, text: sent.text };
      one.take({ type: "events", events: [
        { number: 1, kind: "queued", body: { item } }, { number: 2, kind: "unqueued", body: { item: 1 } },
      ] });
      return [one.state.event, one.pending.length, await sent.outcome];
    }""")
    assert left == [2, 0, None]


def test_a_tool_card_shows_arguments_status_and_a_bounded_result(open_chat, alice, emulator):
    thread = create_thread(alice)
    for _ in range(6):
        say(thread, "long ago " * 150)
    emulator.answer(emulated.text("I look."), emulated.tool_use("message_history_read", {"channel": thread.channel}))
    emulator.answer(emulated.text("Done looking."))
    page = open_chat(alice, thread.channel)
    write(page, "Look it up")
    expect(answers(page).last).to_have_text("Done looking.")
    card = page.locator(".tool-card")
    expect(card.locator(".tool-name")).to_have_text("message_history_read")
    expect(card.locator(".status")).to_contain_text("done")
    expect(card.locator("pre")).to_be_hidden()
    card.locator("summary").press("Enter")
    expect(card.locator("dd")).to_have_text(thread.channel)
    assert len(card.locator("pre").inner_text()) <= 4_000
    expect(card.locator(".cut")).to_contain_text("The beginning of")


@pytest.mark.parametrize("size", [{}, PHONE], ids=["by mouse", "by touch"])
def test_question_cards_are_answered(open_chat, alice, emulator, size):
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which colour?", "options": ["Red", "Blue"]}))
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "How many?"}))
    emulator.answer(emulated.text("As you like."))
    page = open_chat(alice, **size)
    press = Locator.tap if size else Locator.click
    page.locator("#words-box").fill("Ask me")
    press(page.get_by_role("button", name="Send"))
    card = page.locator(".question-card.open")
    expect(card.locator(".question")).to_have_text("Which colour?")
    expect(page.locator("#conversations .dot.waiting")).to_be_attached()
    assert_fits(page)
    press(card.get_by_role("button", name="Blue"))
    expect(card.locator(".question")).to_have_text("How many?")
    press(card.get_by_label("Your own answer"))
    page.keyboard.insert_text("two")
    press(card.get_by_role("button", name="Answer"))
    expect(page.locator(".answer-given")).to_contain_text(["Blue", "two"])
    expect(answers(page).last).to_have_text("As you like.")
    expect(page.locator("#conversations .dot")).to_have_count(0)


def test_words_typed_while_a_question_is_open_answer_it(open_chat, alice, emulator):
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which colour?"}))
    emulator.answer(emulated.text("As you like."))
    page = open_chat(alice)
    write(page, "Ask me")
    expect(page.locator(".question-card.open")).to_be_visible()
    write(page, "Green")
    expect(page.locator(".answer-given")).to_contain_text("Green")
    expect(answers(page).last).to_have_text("As you like.")
    expect(page.locator("[data-fate]")).to_have_count(0)
    # What the model is told of a question that the person stopped is no answer of theirs.
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "And which size?"}))
    write(page, "Ask me more")
    expect(page.locator(".question-card.open")).to_be_visible()
    page.get_by_role("button", name="Stop the answer").click()
    expect(page.locator(".question-card").last).to_contain_text("This question was not answered.")
    expect(page.locator(".answer-given")).to_have_count(1)


def test_words_that_are_refused_come_back(open_chat, alice, emulator, settings):
    settings.MESSAGE_MAX_CHARS = 40
    page = open_chat(alice)
    box = page.locator("#words-box")
    box.fill("x" * 38)
    expect(page.locator("#counter")).to_have_text("2 characters left")
    box.fill("😀" * 41)
    expect(page.locator("#counter")).to_have_text("1 character too many")
    expect(page.get_by_role("button", name="Send")).to_be_disabled()
    box.fill("y" * 40)
    settings.MESSAGE_MAX_CHARS = 30
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("at most 30 are accepted")
    expect(box).to_have_value("y" * 40)
    expect(page.locator("[data-fate]")).to_have_count(0)
    assert not Message.objects.exists()


def test_words_too_long_for_a_frame_go_another_way(open_chat, alice, emulator, settings, monkeypatch):
    settings.MESSAGE_MAX_CHARS = 400_000
    # A tenth of the size, because the browser types slowly.
    limit = FRAME_MAX_BYTES // 10
    monkeypatch.setattr("chat.frames.FRAME_MAX_BYTES", limit)
    monkeypatch.setattr("chat.pages.FRAME_MAX_BYTES", limit)
    emulator.answer(emulated.text("That was long."))
    page = open_chat(alice)
    # By their own bytes they would fit; in the frame each tab takes an escape.
    text = ("a" + "\t" * 7) * (limit // 15 + 1) + "."
    assert len(text) + 50_000 < limit < len(json.dumps(text))
    fill_at_once = "([box, text]) => { box.value = text; box.dispatchEvent(new Event('input')); }"
    page.evaluate(fill_at_once, [page.locator("#words-box").element_handle(), text])
    page.locator("#words-box").press("Enter")
    expect(answers(page)).to_have_text("That was long.")
    assert Message.objects.get(role="user").text == text

    # So does the answer to a question.
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "More?"}))
    write(page, "Ask me")
    own = page.locator(".question-card.open").get_by_label("Your own answer")
    emulator.answer(emulated.text("That was long too."))
    page.evaluate(fill_at_once, [own.element_handle(), text])
    own.press("Enter")
    expect(answers(page).last).to_have_text("That was long too.")
    assert Message.objects.get(role="tool").text == text


def test_a_model_error_is_shown_as_a_sentence(open_chat, alice, emulator):
    emulator.fault("status", status=400, times=-1)
    page = open_chat(alice)
    write(page, "Hello")
    expect(page.locator(".notice")).to_be_visible()
    expect(page.locator("#stop")).to_be_hidden()


def test_a_composing_input_methods_enter_does_not_send(open_chat, alice):
    page = open_chat(alice)
    box = page.locator("#words-box")
    box.fill("ni")
    composing = "{key: 'Enter', keyCode: 229, isComposing: true, bubbles: true, cancelable: true}"
    box.evaluate(f"node => node.dispatchEvent(new KeyboardEvent('keydown', {composing}))")
    expect(box).to_have_value("ni")
    box.press("Enter")
    expect(box).to_have_value("")


def test_the_page_speaks_chinese(open_chat, alice, emulator):
    alice.language = "zh-hans"
    alice.save()
    emulator.answer(emulated.text("你好，**世界**。"))
    page = open_chat(alice)
    expect(page.get_by_role("button", name="发送")).to_be_visible()
    write(page, "你好")
    expect(answers(page).locator("strong")).to_have_text("世界")
    expect(page.locator(".day")).to_have_text("今天")
