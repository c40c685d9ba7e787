"""The chat page in Chromium, as a person uses it."""

import json
import re

import pytest
from playwright.sync_api import Locator, Page, expect

from agent.conversations import delete as delete_conversation
from chat.conversations import create_conversation, rename_conversation
from chat.frames import FRAME_MAX_BYTES
from chat.snapshot import apply
from llm.emulator import client as emulated
from maxclaw import clock
from tests.browser import PHONE
from tests.browser_checks import assert_fits
from tests.chat.histories import random_history
from tests.chat.records import say, say_many
from tests.conftest import PASSWORD
from tests.live_server import running_server
from threads.lifecycle import archive, create_thread
from threads.models import Message, Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MARKDOWN = "Here is **bold** and code:\n\n```python\ndef f():\n    return 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"


@pytest.fixture
def open_page(server, open_tab):
    """Opens the chat page: `open_page(user, channel="", **context_options) -> Page`, connected."""

    def open_one(user, channel="", **options):
        page = open_tab(server, user, **options).page
        page.goto(f"{server.url}/c/{channel}/" if channel else server.url)
        connected(page)
        return page

    return open_one


def connected(page: Page) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")


def write(page: Page, text: str) -> None:
    page.locator("#words-box").fill(text)
    page.keyboard.press("Enter")


def answers(page: Page):
    return page.locator('.from-assistant[data-state="complete"] .prose')


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


def test_an_answer_grows_as_plain_text_and_becomes_markdown_when_it_is_whole(open_page, alice, emulator):
    words = " ".join(f"word{number}" for number in range(60))
    emulator.answer(emulated.text(f"**bold** {words}"), pace="10:25")
    page = open_page(alice)
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


def test_stop_ends_the_answer_and_what_was_said_stays(open_page, alice, emulator):
    emulator.answer(emulated.text("word " * 200), pace="10:10")
    page = open_page(alice)
    write(page, "Talk")
    expect(page.locator(".prose.growing")).to_contain_text("word word")
    page.get_by_role("button", name="Stop the answer").click()
    expect(page.locator(".state-line")).to_have_text("The answer was interrupted here.")
    expect(page.locator("#stop")).to_be_hidden()
    expect(page.locator('[data-state="interrupted"] .prose')).to_contain_text("word word")


def test_words_during_an_answer_are_shown_as_queued_until_they_are_read(open_page, alice, emulator):
    emulator.answer(emulated.text("First."), hold="first")
    emulator.answer(emulated.text("Second."))
    page = open_page(alice)
    write(page, "One")
    expect(page.locator(".working")).to_be_visible()
    write(page, "Two")
    expect(page.locator('[data-fate="queued"]')).to_contain_text("Two")
    emulator.release("first")
    expect(answers(page).last).to_have_text("Second.")
    expect(page.locator("[data-fate]")).to_have_count(0)
    assert page.locator(".from-user .bubble").all_inner_texts() == ["One", "Two"]


def test_a_tool_card_shows_arguments_status_and_a_bounded_result(open_page, alice, emulator):
    thread = create_thread(alice)
    for _ in range(6):
        say(thread, "long ago " * 150)
    emulator.answer(emulated.text("I look."), emulated.tool_use("message_history_read", {"channel": thread.channel}))
    emulator.answer(emulated.text("Done looking."))
    page = open_page(alice, thread.channel)
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
def test_question_cards_are_answered(open_page, alice, emulator, size):
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which colour?", "options": ["Red", "Blue"]}))
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "How many?"}))
    emulator.answer(emulated.text("As you like."))
    page = open_page(alice, **size)
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


def test_words_typed_while_a_question_is_open_answer_it(open_page, alice, emulator):
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which colour?"}))
    emulator.answer(emulated.text("As you like."))
    page = open_page(alice)
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


def test_words_that_are_refused_come_back(open_page, alice, emulator, settings):
    settings.MESSAGE_MAX_CHARS = 40
    page = open_page(alice)
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


def test_words_too_long_for_a_frame_go_another_way(open_page, alice, emulator, settings, monkeypatch):
    settings.MESSAGE_MAX_CHARS = 400_000
    # A tenth of the size, because the browser types slowly.
    limit = FRAME_MAX_BYTES // 10
    monkeypatch.setattr("chat.frames.FRAME_MAX_BYTES", limit)
    monkeypatch.setattr("chat.pages.FRAME_MAX_BYTES", limit)
    emulator.answer(emulated.text("That was long."))
    page = open_page(alice)
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


def test_a_server_that_goes_away_and_comes_back_is_caught_up_with(server, open_tab, alice, emulator):
    thread, other = create_thread(alice, title="Boats"), create_thread(alice, title="Lakes")
    tab = open_tab(server, alice)
    page = tab.page
    page.goto(f"{server.url}/c/{thread.channel}/")
    connected(page)
    say(thread, "before")
    expect(page.locator(".from-user .bubble")).to_have_text("before")
    server.stop()
    expect(page.locator("#connection")).to_contain_text("Reconnecting")
    page.locator("#conversations a", has_text="Lakes").click()
    write(page, "for the other one")
    page.locator("#conversations a", has_text="Boats").click()
    write(page, "written while it was away")
    expect(page.locator('[data-fate="sending"]')).to_contain_text("written while it was away")
    for number in range(5):
        say(thread, f"missed {number}")
    emulator.answer(emulated.text("Back again."))
    emulator.answer(emulated.text("Back again."))
    with running_server(server.port):
        connected(page)
        expect(answers(page)).to_have_text("Back again.")
        expected = ["before", *(f"missed {number}" for number in range(5)), "written while it was away"]
        assert page.locator(".from-user .bubble").all_inner_texts() == expected
        expect(page.locator("[data-fate]")).to_have_count(0)
        # So does what waited in a conversation that is not open.
        for _look in range(200):
            if Message.objects.filter(thread=other, role="assistant").exclude(meta__state="streaming").exists():
                break
            page.wait_for_timeout(50)
        assert list(Message.objects.filter(thread=other, role="user").values_list("text", flat=True)) == [
            "for the other one"
        ]
        page.close()
    tab.problems.clear()  # the browser's own words about a server that is not there


def test_sockets_cut_in_the_middle_of_an_answer_miss_nothing(server, open_tab, alice, emulator):
    tab = open_tab(server, alice)
    page = tab.page
    # The page's socket is its own affair: keep hold of every one it opens.
    page.add_init_script(
        "window.sockets = []; const Real = WebSocket;"
        "WebSocket = class extends Real { constructor(...given) { super(...given); sockets.push(this); } };"
    )
    page.goto(server.url)
    connected(page)
    words = [f"word{number}" for number in range(80)]
    emulator.answer(emulated.text(" ".join(words)), pace="10:30")
    write(page, "Talk")
    cuts = 0
    while answers(page).count() == 0:
        expect(page.locator(".prose")).to_be_visible()
        page.evaluate("sockets.at(-1).close()")
        cuts += 1
        connected(page)
        page.wait_for_timeout(120)
    assert cuts >= 2
    expect(answers(page)).to_have_text(" ".join(words))
    assert page.locator(".from-user .bubble").all_inner_texts() == ["Talk"]


def test_a_second_tab_shows_the_same(open_page, alice, emulator):
    thread = create_thread(alice, title="Boats")
    first, second = open_page(alice, thread.channel), open_page(alice, thread.channel)
    emulator.answer(emulated.text("For both."))
    write(first, "Hello")
    for page in (first, second):
        expect(answers(page)).to_have_text("For both.")
    rename_conversation(alice, thread.channel, "Ships")
    for page in (first, second):
        expect(page.locator("#title")).to_have_text("Ships")
        expect(page.locator('#conversations a[aria-current="page"]')).to_have_text("Ships")


def test_going_between_conversations_and_back_keeps_drafts_and_places(open_page, alice):
    boats, trains = create_thread(alice, title="Boats"), create_thread(alice, title="Trains")
    say(boats, "about boats")
    say(trains, "about trains")
    page = open_page(alice, boats.channel)
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


def test_titles_are_searched_and_more_rows_come_by_pages(open_page, alice):
    threads = [create_thread(alice, title=f"Conversation {number}") for number in range(130)]
    page = open_page(alice)
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


def test_what_was_deleted_stands_by_pages_with_what_was_put_away(open_page, alice):
    made = [create_thread(alice, title=f"Conversation {number}") for number in range(63)]
    Thread.objects.filter(pk__in=[thread.pk for thread in made]).update(deleted=clock.now())
    page = open_page(alice)
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


def test_earlier_messages_load_without_moving_what_is_read(open_page, alice):
    thread = create_thread(alice)
    say_many(thread, 150)
    page = open_page(alice, thread.channel)
    expect(page.locator(".bubble").last).to_have_text("message 149")
    expect(page.locator(".bubble").first).to_have_text("message 50")
    read = page.locator(".bubble", has_text="message 53")
    page.locator("#scroller").evaluate("node => { node.scrollTop = 400; }")
    before = read.bounding_box()
    expect(page.locator(".bubble").first).to_have_text("message 0")
    after = read.bounding_box()
    assert before and after and abs(after["y"] - before["y"]) < 60
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


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


def test_a_reader_who_scrolled_up_is_left_there_and_can_go_to_the_end(open_page, alice):
    thread = create_thread(alice)
    say_many(thread, 60)
    page = open_page(alice, thread.channel)
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


def test_a_conversation_deleted_elsewhere_says_so_and_the_words_stay(open_page, alice, emulator):
    thread = create_thread(alice, title="Boats")
    page = open_page(alice, thread.channel)
    expect(page.locator("#title")).to_have_text("Boats")
    page.locator("#words-box").fill("not yet sent")
    Thread.objects.get(pk=thread.pk).delete()
    expect(page.locator(".welcome")).to_contain_text("This conversation was deleted.")
    expect(page.locator("#words-box")).to_have_value("not yet sent")
    emulator.answer(emulated.text("A new one then."))
    page.locator("#words-box").press("Enter")
    expect(answers(page)).to_have_text("A new one then.")


def test_an_archived_conversation_is_read_only(open_page, alice):
    thread = create_thread(alice, title="Boats")
    say(thread, "old words")
    archive(thread, acting_user=alice)
    page = open_page(alice, thread.channel)
    expect(page.locator(".bubble")).to_have_text("old words")
    expect(page.get_by_role("alert")).to_contain_text("archived")
    expect(page.locator("#words-box")).to_be_hidden()


def test_signing_out_elsewhere_is_said_and_signing_in_again_goes_on(open_page, alice, client):
    from django.contrib.sessions.models import Session

    thread = create_thread(alice, title="Boats")
    page = open_page(alice, thread.channel)
    Session.objects.all().delete()
    write(page, "Hello")
    expect(page.get_by_role("alert").first).to_contain_text("signed out")
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.locator("#words-box")).to_have_value("Hello")


def test_a_model_error_is_shown_as_a_sentence(open_page, alice, emulator):
    emulator.fault("status", status=400, times=-1)
    page = open_page(alice)
    write(page, "Hello")
    expect(page.locator(".notice")).to_be_visible()
    expect(page.locator("#stop")).to_be_hidden()


def test_a_composing_input_methods_enter_does_not_send(open_page, alice):
    page = open_page(alice)
    box = page.locator("#words-box")
    box.fill("ni")
    composing = "{key: 'Enter', keyCode: 229, isComposing: true, bubbles: true, cancelable: true}"
    box.evaluate(f"node => node.dispatchEvent(new KeyboardEvent('keydown', {composing}))")
    expect(box).to_have_value("ni")
    box.press("Enter")
    expect(box).to_have_value("")


def test_on_a_phone_the_list_is_a_drawer(open_page, alice, emulator):
    thread = create_thread(alice, title="Boats")
    create_thread(alice, title="Trains")
    page = open_page(alice, **PHONE)
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


def test_the_page_speaks_chinese(open_page, alice, emulator):
    alice.language = "zh-hans"
    alice.save()
    emulator.answer(emulated.text("你好，**世界**。"))
    page = open_page(alice)
    expect(page.get_by_role("button", name="发送")).to_be_visible()
    write(page, "你好")
    expect(answers(page).locator("strong")).to_have_text("世界")
    expect(page.locator(".day")).to_have_text("今天")


def test_both_reducers_are_one_function(open_page, alice):
    page = open_page(alice)
    histories = [random_history(seed) for seed in range(150)]
    python = []
    for state, events in histories:
        for event in events:
            state = apply(state, event)
        python.append(state)
    reduce_all = """async histories => {
      const { apply } = await import("/static/chat/state.js");
      return histories.map(([state, events]) => events.reduce(apply, state));
    }"""
    javascript = page.evaluate(reduce_all, json.loads(json.dumps(histories)))
    assert javascript == json.loads(json.dumps(python))
