"""What a person wrote or asked for is not lost: not by a cut connection, not by going elsewhere, not by a reload."""

import re

import pytest
from django.conf import settings as configured
from playwright.sync_api import expect

from agent import conversations as whole
from llm.emulator import client as emulated
from tests.chat.browser.hands import answers, connected, words
from tests.chat.records import say
from threads.lifecycle import create_thread
from threads.models import Message, Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


class Gate:
    """Lets the page's sockets through, or none of them: pages load all the while."""

    def __init__(self, page, server):
        self.page, self.server, self.shut = page, server, False
        page.route_web_socket(re.compile("/ws/chat/"), lambda socket: self.meet(socket))
        page.on("dialog", lambda dialog: dialog.accept())  # words on their way: leave all the same
        page.reload()
        connected(page)

    def meet(self, socket):
        if self.shut:
            socket.close()
        else:
            socket.connect_to_server()

    def close(self):
        self.shut = True
        self.server.kill_sockets()
        expect(self.page.locator("#connection")).to_have_attribute("data-state", "reconnecting")

    def open(self):
        self.shut = False
        self.page.evaluate("dispatchEvent(new Event('online'))")
        connected(self.page)


def test_words_on_their_way_and_a_stop_outlive_a_reload_and_wait_for_the_connection(server, open_chat, alice, emulator):
    thread = create_thread(alice, title="Boats")
    page = open_chat(alice, thread.channel)
    gate = Gate(page, server)
    gate.close()
    page.locator("#words-box").fill("Do not lose me")
    page.keyboard.press("Enter")
    on_their_way = page.locator('.on-its-way[data-fate="sending"] .bubble')
    expect(on_their_way).to_have_text("Do not lose me")
    page.goto(server.url)  # another conversation: these words go out from there too
    page.goto(f"{server.url}/c/{thread.channel}/")
    expect(on_their_way).to_have_text("Do not lose me")
    emulator.answer(emulated.text("word " * 300), pace="10:20")
    gate.open()
    expect(page.locator(".prose.growing")).to_contain_text("word word")
    expect(words(page)).to_have_text(["Do not lose me"])

    gate.close()
    page.locator("#stop").click()
    expect(page.locator(".toast")).to_contain_text("as soon as the connection is back")
    page.goto(server.url)  # a page that was loaded since, and shows another conversation, stops it too
    gate.open()
    page.goto(f"{server.url}/c/{thread.channel}/")
    expect(page.locator('.from-assistant[data-state="interrupted"]')).to_have_count(1)
    page.reload()
    connected(page)
    expect(words(page)).to_have_text(["Do not lose me"])
    assert Message.objects.filter(thread=thread, role="user").count() == 1


def test_an_edit_and_an_answer_in_progress_are_drafts(open_chat, alice, emulator):
    boats = create_thread(alice, title="Boats")
    create_thread(alice, title="Trains")
    say(boats, "teh boat")
    say(boats, "a boat", "assistant")
    page = open_chat(alice, boats.channel)
    expect(words(page)).to_have_text(["teh boat"])
    page.locator("#words-box").focus()
    page.keyboard.press("ArrowUp")
    box, form = page.locator(".edit-box"), page.locator(".edit-form")
    box.fill("the boat, and more")
    page.locator("#conversations a", has_text="Trains").click()
    expect(page.locator("#title")).to_have_text("Trains")
    page.locator("#conversations a", has_text="Boats").click()
    expect(box).to_have_value("the boat, and more")
    expect(page.locator("#words-box")).to_be_focused()
    page.reload()
    expect(box).to_have_value("the boat, and more")

    # The same measure as the message box.
    send = form.get_by_role("button", name="Send")
    box.fill("x" * (configured.MESSAGE_MAX_CHARS + 1))
    expect(form.locator(".counter")).to_have_text("1 character too many")
    expect(send).to_be_disabled()
    box.fill("x" * configured.MESSAGE_MAX_CHARS)
    expect(form.locator(".counter")).to_have_text("0 characters left")
    expect(send).to_be_enabled()
    box.press("Escape")
    expect(words(page)).to_have_text(["teh boat"])
    page.reload()
    expect(words(page)).to_have_text(["teh boat"])
    expect(box).to_have_count(0)

    # An answer of one's own to a question.
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which?", "options": ["a", "b"]}))
    page.locator("#words-box").fill("Ask me")
    page.keyboard.press("Enter")
    own = page.locator(".own-answer input")
    own.fill("neither of th")
    page.locator("#conversations a", has_text="Trains").click()
    expect(page.locator("#title")).to_have_text("Trains")
    page.locator("#conversations a", has_text="Boats").click()
    expect(own).to_have_value("neither of th")
    emulator.answer(emulated.text("As you like."))
    own.fill("neither of them")
    own.press("Enter")
    expect(answers(page).last).to_have_text("As you like.")
    kept = page.evaluate("Object.keys(sessionStorage).filter(name => /^(edit|answer|pending) /.test(name))")
    assert kept == []


def test_deleted_ones_come_back_from_their_toasts_and_from_the_list(open_chat, alice):
    threads = {title: create_thread(alice, title=title) for title in ("Boats", "Trains", "Planes")}
    page = open_chat(alice, threads["Planes"].channel)
    page.clock.install()
    rows = page.locator("#conversations a .name")
    toasts = page.locator(".toast")
    for title in ("Boats", "Trains"):
        page.locator("#conversations a", has_text=title).focus()
        page.keyboard.press("Delete")
        expect(toasts.last).to_contain_text(title)
        expect(toasts.last.locator(".undo")).to_be_focused()
    expect(toasts).to_have_count(2)
    # The open meter keeps its place, and is covered by none of them.
    page.locator("#meter").click()
    meter, last = page.locator("#meter-panel").bounding_box(), toasts.last.bounding_box()
    assert meter and last and last["y"] + last["height"] <= meter["y"]
    page.keyboard.press("Escape")
    toasts.last.locator(".undo").focus()
    # What somebody stands on stays, the other goes when its time is over.
    page.clock.fast_forward(20_000)
    expect(toasts).to_have_count(1)
    page.clock.fast_forward(60_000)
    expect(toasts.locator(".undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Trains")
    expect(toasts).to_have_count(0)

    page.locator("#archived").click()
    gone = page.locator("#conversations .deleted")
    expect(gone).to_have_count(1)
    expect(gone).to_contain_text("Boats")
    expect(gone).to_contain_text("Erased at")
    whole.delete(alice, threads["Planes"].channel)
    expect(gone).to_have_count(2)
    page.get_by_role("button", name="Bring back “Boats”").click()
    expect(page.locator("#title")).to_have_text("Boats")
    expect(rows.filter(has_text="Boats")).to_have_count(1)
    assert Thread.objects.get(pk=threads["Boats"].pk).deleted is None


def test_the_first_words_choose_their_model(open_chat, alice, emulator):
    page = open_chat(alice)
    model = page.locator("#model")
    expect(model).to_contain_text("Automatic")
    model.click()
    name = page.get_by_role("menuitemradio").nth(1).inner_text()
    page.get_by_role("menuitemradio").nth(1).click()
    page.reload()
    connected(page)
    expect(model).to_contain_text(name)
    emulator.answer(emulated.text("Aye."))
    page.locator("#words-box").fill("Hello")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_text(["Aye."])
    assert Thread.objects.get(owner=alice, kind="web").model == name
    page.locator("a[data-new]").last.click()
    expect(model).to_contain_text("Automatic")
