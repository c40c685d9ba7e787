"""What happens elsewhere while the page is open: its server goes and comes back, another tab or page changes things."""

import json

import pytest
from playwright.sync_api import expect

from chat.conversations import rename_conversation
from chat.snapshot import apply
from llm.emulator import client as emulated
from tests.chat.browser.hands import answers, connected, write
from tests.chat.histories import random_history
from tests.chat.records import say
from tests.live_server import running_server
from threads.lifecycle import archive, create_thread
from threads.models import Message, Thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


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


def test_a_second_tab_shows_the_same(open_chat, alice, emulator):
    thread = create_thread(alice, title="Boats")
    first, second = open_chat(alice, thread.channel), open_chat(alice, thread.channel)
    emulator.answer(emulated.text("For both."))
    write(first, "Hello")
    for page in (first, second):
        expect(answers(page)).to_have_text("For both.")
    rename_conversation(alice, thread.channel, "Ships")
    for page in (first, second):
        expect(page.locator("#title")).to_have_text("Ships")
        expect(page.locator('#conversations a[aria-current="page"]')).to_have_text("Ships")


def test_a_conversation_deleted_elsewhere_says_so_and_the_words_stay(open_chat, alice, emulator):
    thread = create_thread(alice, title="Boats")
    page = open_chat(alice, thread.channel)
    expect(page.locator("#title")).to_have_text("Boats")
    page.locator("#words-box").fill("not yet sent")
    Thread.objects.get(pk=thread.pk).delete()
    expect(page.locator(".welcome")).to_contain_text("This conversation was deleted.")
    expect(page.locator("#words-box")).to_have_value("not yet sent")
    emulator.answer(emulated.text("A new one then."))
    page.locator("#words-box").press("Enter")
    expect(answers(page)).to_have_text("A new one then.")


def test_an_archived_conversation_is_read_only(open_chat, alice):
    thread = create_thread(alice, title="Boats")
    say(thread, "old words")
    archive(thread, acting_user=alice)
    page = open_chat(alice, thread.channel)
    expect(page.locator(".bubble")).to_have_text("old words")
    expect(page.get_by_role("alert")).to_contain_text("archived")
    expect(page.locator("#words-box")).to_be_hidden()


def test_signing_out_elsewhere_is_said_and_signing_in_again_goes_on(open_chat, alice, client):
    from django.contrib.sessions.models import Session

    thread = create_thread(alice, title="Boats")
    page = open_chat(alice, thread.channel)
    Session.objects.all().delete()
    write(page, "Hello")
    expect(page.get_by_role("alert").first).to_contain_text("signed out")
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    expect(page.locator("#words-box")).to_have_value("Hello")


def test_both_reducers_are_one_function(open_chat, alice):
    page = open_chat(alice)
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
