"""Quoting on the page: by button, context menu and keyboard; the card belongs to the target; nothing goes half."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect

from agent import conversations as whole
from agent.models import InboxItem, ToolCall
from llm.emulator.client import text
from tests.browser import PHONE
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.browser.hands import answers, connected
from tests.chat.records import say, say_many
from tests.threads.records import call_tool, give_result
from threads import copying
from threads.lifecycle import create_thread, erase, narrow
from threads.models import Message, Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def source(alice):
    thread = create_thread(alice, title="Boats")
    say(thread, "How deep is the lake?")
    say(thread, "Forty metres.", "assistant")
    return thread


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


def answer_row(page: Page):
    return page.locator(".from-assistant[data-message]")


def pending(page: Page):
    return page.locator("#quote-place .quote-pending")


def choose(page: Page, title: str) -> None:
    """Search for the target and take it."""
    expect(page.locator("#target-search")).to_be_focused()
    page.keyboard.type(title)
    option = page.locator(".target-chooser [role=option]").first
    expect(option).to_contain_text(title)
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")


def chosen(page: Page, title: str) -> None:
    """The same, where nothing is to be confirmed: the card waits there."""
    choose(page, title)
    expect(page.locator(".target-chooser")).to_have_count(0)
    expect(page.locator("#title")).to_have_text(title)
    expect(pending(page)).to_have_count(1)


def by_button(page: Page) -> None:
    answer_row(page).hover()
    answer_row(page).locator(".act-quote").click()


def by_context_menu(page: Page) -> None:
    answer_row(page).click(button="right", position={"x": 4, "y": 4})
    page.get_by_role("menuitem", name="Quote", exact=False).first.click()


def by_keyboard(page: Page) -> None:
    expect(answer_row(page)).to_be_visible()
    page.keyboard.press("Alt+ArrowUp")
    expect(answer_row(page)).to_be_focused()
    page.keyboard.press("Alt+KeyQ")


def by_the_keyboards_menu(page: Page) -> None:
    expect(answer_row(page)).to_be_visible()
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Enter")
    page.keyboard.type("q")
    page.keyboard.press("Enter")


def test_a_card_belongs_to_the_target_and_goes_out_from_there(open_chat, alice, emulator, source, target):
    """What is quoted comes from one conversation; where the card hangs and where it is sent is the other."""
    emulator.answer(text("I see."))
    page = open_chat(alice, source.channel)
    by_button(page)
    choose(page, "Lakes")
    expect(page.locator("#title")).to_have_text("Lakes")
    expect(page).to_have_url(re.compile(rf"/c/{target.channel}/$"))
    expect(pending(page)).to_contain_text("Message from “Boats”")
    expect(pending(page)).to_contain_text("Forty metres.")
    # Back at the source there is no card; at the target it still waits, also after a fresh start of the page.
    page.locator("#conversations a", has_text="Boats").click()
    expect(page.locator("#title")).to_have_text("Boats")
    expect(pending(page)).to_have_count(0)
    page.locator("#conversations a", has_text="Lakes").click()
    page.reload()
    connected(page)
    expect(pending(page)).to_contain_text("Forty metres.")
    page.locator("#words-box").fill("Is that so?")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text("I see.")
    expect(pending(page)).to_have_count(0)
    row = Message.objects.get(thread=target, role="user")
    assert row.meta["quote"]["text"] == "Forty metres."
    assert not Message.objects.filter(thread=source, text="Is that so?").exists()
    assert not InboxItem.objects.filter(thread=source).exists()
    expect(page.locator(".from-user .quote-card")).to_have_text("Message from “Boats”")


def test_button_context_menu_and_keyboard_all_begin_a_quote(open_chat, alice, source, target):
    page = open_chat(alice, source.channel)
    for begin in (by_context_menu, by_keyboard, by_the_keyboards_menu):
        begin(page)
        choose(page, "Lakes")
        expect(page.locator("#title")).to_have_text("Lakes")
        expect(pending(page)).to_contain_text("Message from “Boats”")
        page.get_by_role("button", name="Take the quote off").click()
        expect(pending(page)).to_have_count(0)
        page.locator("#conversations a", has_text="Boats").click()
        expect(page.locator("#title")).to_have_text("Boats")
    # Left without a choice, the focus goes back to where it was.
    by_keyboard(page)
    expect(page.locator(".target-chooser")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".target-chooser")).to_have_count(0)
    expect(answer_row(page)).to_be_focused()
    expect(pending(page)).to_have_count(0)


def test_the_context_menu_stays_open(open_chat, alice, source):
    """The press that opens it is no press beside it."""
    page = open_chat(alice, source.channel)
    answer_row(page).click(button="right", position={"x": 4, "y": 4})
    menu = page.get_by_role("menu")
    expect(menu).to_be_visible()
    page.wait_for_timeout(400)
    expect(menu).to_be_visible()
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    page.mouse.move(5, 5)
    page.wait_for_timeout(100)
    expect(menu).to_be_visible()
    page.mouse.click(5, 300)
    expect(menu).to_have_count(0)


def in_a_new_one(page: Page, *, isolated: bool, answer: str) -> None:
    """Choose a new conversation, and what level it begins at."""
    page.locator(".target-chooser [role=option]", has_text="New conversation").first.click()
    dialog = page.get_by_role("dialog", name="A new conversation")
    expect(dialog).to_contain_text("Its content may go to every conversation of yours.")
    dialog.get_by_label("isolated").set_checked(isolated)
    if isolated:
        expect(dialog).to_contain_text("Its content reaches itself, its branches and its tasks alone")
    dialog.get_by_role("button", name=answer).click()


def test_a_conversation_is_quoted_from_its_menu_and_from_the_list_also_in_a_new_one(
    open_chat, alice, emulator, source, target
):
    page = open_chat(alice, source.channel)
    page.locator("#whole").click()
    page.get_by_role("menuitem", name="Quote in another conversation").click()
    expect(page.locator(".target-chooser [role=option]", has_text="Boats")).to_have_count(0)
    choose(page, "Lakes")
    expect(pending(page)).to_contain_text("Conversation “Boats”")
    page.get_by_role("button", name="Take the quote off").click()
    expect(pending(page)).to_have_count(0)
    # By the keyboard, where no message has the focus.
    page.locator("#conversations a", has_text="Boats").click()
    expect(page.locator("#title")).to_have_text("Boats")
    page.locator("#words-box").press("Alt+KeyQ")
    choose(page, "Lakes")
    expect(pending(page)).to_contain_text("Conversation “Boats”")
    page.get_by_role("button", name="Take the quote off").click()
    expect(pending(page)).to_have_count(0)
    page.locator("#conversations a", has_text="Boats").click(button="right")
    page.get_by_role("menuitem", name="Quote in another conversation").click()
    emulator.answer(text("I see."))
    conversations = Thread.objects.count()
    in_a_new_one(page, isolated=False, answer="Cancel")
    expect(page.locator(".target-chooser")).to_have_count(0)
    page.locator("#conversations a", has_text="Boats").click(button="right")
    page.get_by_role("menuitem", name="Quote in another conversation").click()
    in_a_new_one(page, isolated=True, answer="Quote there")
    expect(page.locator("#title")).to_have_text("New conversation")
    expect(page.locator("#badges")).to_contain_text("isolated")
    # It begins with the words, and what waits for it outlives a fresh start of the page.
    page.reload()
    connected(page)
    expect(pending(page)).to_contain_text("Conversation “Boats”")
    assert Thread.objects.count() == conversations
    page.locator("#words-box").fill("Read this")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text("I see.")
    row = Message.objects.get(role="user", text="Read this")
    assert (row.meta["quote"]["channel"], row.thread.scope) == (source.channel, "isolated")
    page.locator("a[data-new]").first.click()
    expect(page.locator("#badges")).to_contain_text("open")
    expect(pending(page)).to_have_count(0)


def test_main_and_tasks_offer_no_quoting(open_chat, alice, source):
    main = Thread.objects.get(owner=alice, kind="main")
    task = create_thread(alice, title="Survey", kind="task", parent=source)
    for thread in (main, task):
        say(thread, "a result", "assistant")
        page = open_chat(alice, thread.channel)
        expect(answer_row(page)).to_have_count(1)
        expect(page.locator(".act-quote")).to_have_count(0)
        answer_row(page).click(button="right", position={"x": 4, "y": 4})
        expect(page.get_by_role("menu")).to_be_visible()
        expect(page.get_by_role("menuitem", name="Quote")).to_have_count(0)
        page.context.close()


def test_a_downgrade_asks_once_in_the_servers_words(open_chat, alice, emulator, source, target):
    emulator.answer(text("I see."))
    narrow(source, acting_user=alice, scope="isolated")
    page = open_chat(alice, source.channel)
    by_button(page)
    choose(page, "Lakes")
    dialog = page.get_by_role("dialog", name="Hand it over?")
    expect(dialog).to_contain_text("The source is isolated, and “Lakes” is not on its island.")
    expect(dialog).to_contain_text("Hand this message over to “Lakes” all the same?")
    assert_accessible(page)
    dialog.get_by_role("button", name="Cancel").click()
    expect(page.locator("#title")).to_have_text("Boats")
    by_button(page)
    choose(page, "Lakes")
    dialog.get_by_role("button", name="Hand over").click()
    expect(pending(page)).to_contain_text("You confirmed")
    page.locator("#words-box").fill("Look")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text("I see.")
    quote = Message.objects.get(thread=target, role="user").meta["quote"]
    assert quote["needs_confirm"] and quote["confirmed_at"]
    assert quote["confirm_text"].endswith("Hand this message over to “Lakes” all the same?")


def test_a_source_that_became_isolated_gives_words_and_card_back_and_asks(open_chat, alice, emulator, source, target):
    emulator.answer(text("I see."))
    page = open_chat(alice, source.channel)
    by_button(page)
    choose(page, "Lakes")
    expect(pending(page)).to_have_count(1)
    narrow(source, acting_user=alice, scope="isolated")
    page.locator("#words-box").fill("Look at this")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Hand it over?")
    expect(dialog).to_contain_text("“Lakes” is not on its island")
    expect(page.locator("#words-box")).to_have_value("Look at this")
    expect(pending(page)).to_contain_text("Forty metres.")
    assert not InboxItem.objects.filter(thread=target).exists()
    dialog.get_by_role("button", name="Hand over").click()
    expect(pending(page)).to_contain_text("You confirmed")
    # Another boundary than the one that was confirmed is asked about anew.
    narrow(source, acting_user=alice, category="work")
    page.locator("#words-box").press("Enter")
    expect(dialog).to_contain_text("The source belongs to the category “work”")
    expect(page.locator("#words-box")).to_have_value("Look at this")
    assert not InboxItem.objects.filter(thread=target).exists()
    dialog.get_by_role("button", name="Hand over").click()
    expect(pending(page)).to_contain_text("You confirmed")
    page.locator("#words-box").press("Enter")
    expect(answers(page)).to_have_text("I see.")
    quote = Message.objects.get(thread=target, role="user").meta["quote"]
    assert quote["confirmed_at"] and "“work”" in quote["confirm_text"] and "island" in quote["confirm_text"]


def test_a_refused_send_comes_back_whole(open_chat, alice, emulator, source, target):
    """Whatever waits there meanwhile, with a tab that has no room left, and when the target itself is gone."""
    page = open_chat(alice, source.channel)
    page.evaluate("() => { Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError'); }; }")
    by_button(page)
    choose(page, "Lakes")
    expect(pending(page)).to_have_count(1)
    Message.objects.filter(thread=source, role="assistant").delete()
    page.locator("#words-box").fill("Look at this")
    with held_back(page):
        page.keyboard.press("Enter")
        expect(pending(page)).to_have_count(0)
        quote_whole(page, "Boats", "Lakes")
        expect(pending(page)).to_contain_text("Conversation “Boats”")
        page.locator("#words-box").fill("and at that")
    expect(page.locator('.alert[data-name="error"]')).to_contain_text("There is no such message")
    expect(page.locator("#words-box")).to_have_value("Look at this\n\nand at that")
    expect(pending(page)).to_have_count(2)
    expect(pending(page).first).to_contain_text("Forty metres.")
    expect(pending(page).last).to_contain_text("Goes with the message after that")
    expect(page.locator(".message.on-its-way")).to_have_count(0)
    assert not InboxItem.objects.filter(thread=target).exists()
    # They stay this conversation's: elsewhere there are none.
    page.locator("#conversations a", has_text="Boats").click()
    expect(page.locator("#title")).to_have_text("Boats")
    expect(pending(page)).to_have_count(0)
    page.locator("#conversations a", has_text="Lakes").click()
    expect(pending(page)).to_have_count(2)
    # The target is gone while words go there: they and the cards stand on a new conversation's box.
    with held_back(page):
        page.locator("#words-box").press("Enter")
        expect(pending(page)).to_have_count(1)
        whole.delete(alice, target.channel)
    expect(page.locator(".welcome")).to_contain_text("deleted")
    expect(page.locator("#title")).to_have_text("New conversation")
    expect(page.locator("#words-box")).to_have_value("Look at this\n\nand at that")
    expect(pending(page)).to_have_count(2)
    expect(pending(page).first).to_contain_text("Forty metres.")
    expect(pending(page).last).to_contain_text("Conversation “Boats”")
    assert not InboxItem.objects.exists()


def test_words_that_are_taken_back_bring_their_card(open_chat, alice, emulator, source, target):
    emulator.answer(text("I see."), hold="first")
    emulator.answer(text("I see that too."))
    page = open_chat(alice, source.channel)
    by_button(page)
    chosen(page, "Lakes")
    page.locator("#words-box").fill("First")
    page.keyboard.press("Enter")
    expect(page.locator("#stop")).to_be_visible()
    page.locator("#conversations a", has_text="Boats").click()
    by_button(page)
    chosen(page, "Lakes")
    page.locator("#words-box").fill("Second")
    page.keyboard.press("Enter")
    queued = page.locator('.on-its-way[data-fate="queued"]')
    expect(queued.locator(".quote-card")).to_have_text("Message from “Boats”")
    queued.get_by_role("button", name="Take back").click()
    expect(page.locator("#words-box")).to_have_value("Second")
    expect(pending(page)).to_contain_text("Message from “Boats”")
    emulator.release("first")
    expect(answers(page)).to_have_text("I see.")


@contextmanager
def held_back(page: Page) -> Iterator[None]:
    """What the page says over its socket waits until the block has ended."""
    page.evaluate(
        """() => {
          const { send } = WebSocket.prototype;
          const waiting = [];
          WebSocket.prototype.send = function (frame) { waiting.push([this, frame]); };
          window.letGo = () => {
            WebSocket.prototype.send = send;
            for (const [socket, frame] of waiting) socket.send(frame);
          };
        }"""
    )
    yield
    page.evaluate("letGo()")


def quote_whole(page: Page, title: str, target: str) -> None:
    page.locator("#conversations a", has_text=title).click(button="right")
    page.get_by_role("menuitem", name="Quote in another conversation").click()
    choose(page, target)


def quoted_already(source: Thread, target: Thread, message: Message | None = None) -> None:
    """A row of the target's that quotes, without any model."""
    from tests.quotes.records import at, send, take_in

    send(target, at(source, message), "Look at this", confirmed=True)
    take_in(target)


def test_a_card_leads_far_back_into_a_long_conversation(open_chat, alice, server, emulator, source, target):
    message = source.messages.get(role="assistant")
    quoted_already(source, target, message)
    say_many(source, 450)
    page = open_chat(alice, target.channel)
    page.locator(".quote-card a").click()
    expect(page.locator(f'[data-message="{message.pk}"]')).to_be_focused()
    expect(page.locator(f'[data-message="{message.pk}"]')).to_be_in_viewport()
    # The rest of the conversation is read on from there, down to its end.
    page.locator("#to-latest").click()
    expect(page.locator(".message[data-message]").last).to_contain_text("message 449")
    # So does an address that somebody kept.
    page.goto(f"{server.url}/c/{source.channel}/#m{message.pk}")
    page.reload()
    expect(page.locator(f'[data-message="{message.pk}"]')).to_be_focused()


def test_a_card_leads_into_what_was_rewound(open_chat, alice, emulator, source, target):
    message = source.messages.get(role="assistant")
    quoted_already(source, target, message)
    copying.rewind(source, source.messages.get(role="user"), acting_user=alice)
    page = open_chat(alice, target.channel)
    page.locator(".quote-card a").click()
    expect(page.locator(f'[data-message="{message.pk}"]')).to_be_visible()


def test_a_card_of_a_tools_result_leads_to_the_answer_that_called_it(open_chat, alice, emulator, source, target):
    asking = call_tool(source)
    result = give_result(source, text="found it")
    call = ToolCall(message=asking, thread=source, owner=alice, call_id="toolu_1", tool="look", status="done")
    call.result = result
    call.save()
    quoted_already(source, target, result)
    page = open_chat(alice, target.channel)
    page.locator(".quote-card a").click()
    expect(page.locator(f'[data-message="{asking.pk}"]')).to_be_focused()
    expect(page.locator("#alerts")).to_be_empty()


def test_a_send_that_is_refused_while_one_is_elsewhere_is_told_by_name(open_chat, alice, emulator, source, target):
    page = open_chat(alice, source.channel)
    by_button(page)
    choose(page, "Lakes")
    expect(pending(page)).to_have_count(1)
    narrow(source, acting_user=alice, scope="isolated")
    page.locator("#words-box").fill("Look at this")
    with held_back(page):
        page.keyboard.press("Enter")
        page.locator("#conversations a", has_text="Boats").click()
        expect(page.locator("#title")).to_have_text("Boats")
        page.locator("#words-box").fill("of boats")
    expect(page.locator("#alerts")).to_contain_text("What you wrote in “Lakes” was not sent")
    expect(page.locator("#words-box")).to_have_value("of boats")


def test_a_card_says_when_its_source_is_gone(open_chat, alice, emulator, source, target):
    erased, deleted = create_thread(alice, title="Erased"), create_thread(alice, title="Deleted")
    for thread in (source, erased, deleted):
        quoted_already(thread, target, source.messages.get(role="assistant") if thread == source else None)
    Message.objects.filter(thread=source, role="assistant").delete()
    erase(erased, acting_user=alice)
    whole.delete(alice, deleted.channel)
    page = open_chat(alice, target.channel, refusals=True)
    cards = page.locator(".quote-card")
    for place, sentence in enumerate(
        [
            "The quoted message is not there any more.",
            "The quoted conversation was deleted.",
            "The quoted conversation was deleted.",
        ]
    ):
        cards.nth(place).locator("a").click()
        expect(cards.nth(place)).to_contain_text(sentence)
        expect(page.locator("#title")).to_have_text("Lakes")


@pytest.mark.parametrize(("device", "scheme"), [("desk", "light"), ("phone", "dark")])
def test_quoting_is_accessible_and_fits(open_chat, alice, emulator, source, target, scheme, device):
    create_thread(
        alice, title="A very long title about lakes and boats that has no end " * 3, scope="isolated", category="work"
    )
    quoted_already(source, target, source.messages.get(role="assistant"))
    options = PHONE if device == "phone" else {}
    page = open_chat(alice, target.channel, color_scheme=scheme, **options)
    expect(page.locator(".quote-card")).to_be_visible()
    assert_accessible(page)
    page.locator(".act-quote").last.dispatch_event("click")
    expect(page.locator(".target-chooser [role=option]").nth(2)).to_be_visible()
    assert_accessible(page)
    assert_fits(page)
    page.locator(".target-chooser [role=option]", has_text="this one").click()
    expect(pending(page)).to_be_visible()
    assert_accessible(page)
    assert_fits(page)
