"""The bridge to a page that embeds the chat: all four messages, from the right window of the right origin alone."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from agent.models import InboxItem
from llm.emulator.client import text
from tests.chat.browser.hands import connected
from tests.chat.records import say
from threads.lifecycle import create_thread, erase, narrow
from threads.models import Message

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

HOST = """<!doctype html><title>Desk</title>
<iframe name="chat" src="{chat}" style="width: 1000px; height: 700px"></iframe>
<iframe name="stranger" src="{stranger}"></iframe>
<iframe name="sibling" src="/sibling"></iframe>
<script>
  window.heard = [];
  addEventListener("message", (event) => heard.push({{ origin: event.origin, ...event.data }}));
  window.tell = (message) => frames.chat.postMessage({{ maxclaw: 1, ...message }}, "*");
</script>"""
STRANGER = """<!doctype html><title>Stranger</title>
<script>
  window.heard = [];
  addEventListener("message", (event) => heard.push(event.data));
  window.tell = (message) => parent.frames.chat.postMessage({ maxclaw: 1, ...message }, "*");
</script>"""


@contextmanager
def site(html: str) -> Iterator[str]:
    """A web server of another origin with one page; yields its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            html = STRANGER if self.path == "/sibling" else pages[self.server.server_port]
            self.wfile.write(html.encode())

        def log_message(self, *_args: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    pages[httpd.server_port] = html
    serving = threading.Thread(target=httpd.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        serving.join()
        httpd.server_close()


pages: dict[int, str] = {}


@pytest.fixture
def source(alice):
    thread = create_thread(alice, title="Boats", scope="isolated")
    say(thread, "Forty metres.", "assistant")
    return thread


@pytest.fixture
def target(alice):
    return create_thread(alice, title="Lakes")


@pytest.fixture
def quote(source):
    return {"kind": "message", "channel": source.channel, "message_id": source.messages.get().pk}


@pytest.fixture
def desk(server, open_tab, alice, target, settings):
    """A page of an allowed origin, with the chat and a stranger in frames: (its page, the chat, the stranger)."""
    with ExitStack() as sites:
        stranger = sites.enter_context(site(STRANGER))
        origin = sites.enter_context(site(HOST.format(chat=f"{server.url}/c/{target.channel}/", stranger=stranger)))
        settings.EMBED_ORIGINS = [origin]
        tab = open_tab(server, alice)
        # The other sites, what the browser says of a frame that may not take the focus by itself, and of refusals.
        expected = (f"left the server: {origin}", f"left the server: {stranger}", "Blocked autofocus", "Failed to load")
        tab.forgive = lambda problem: problem.startswith(expected)
        tab.page.goto(origin)
        chat = tab.page.frame("chat")
        connected(chat)
        yield tab.page, chat, tab.page.frame("stranger")


def answer_to(page, message: dict) -> dict:
    """Tell the chat something, and wait for its answer."""
    page.evaluate("message => tell(message)", message)
    page.wait_for_function("id => heard.some((one) => one.type === 'answer' && one.id === id)", arg=message["id"])
    found = page.evaluate("id => heard.find((one) => one.type === 'answer' && one.id === id)", message["id"])
    return {name: found[name] for name in found if name not in ("maxclaw", "type", "id")}


def confirm(chat) -> None:
    dialog = chat.get_by_role("dialog", name="Hand it over?")
    expect(dialog).to_contain_text("“Lakes” is not on its island")
    dialog.get_by_role("button", name="Hand over").click()


def test_all_four_messages_are_carried(desk, server, source, target, quote, emulator):
    emulator.answer(text("I see."))
    page, chat, _stranger = desk
    # reveal: a conversation, at a message.
    assert answer_to(page, {"id": 1, "type": "reveal", **quote}) == {"origin": server.url, "ok": True}
    expect(chat.locator(f'[data-message="{quote["message_id"]}"]')).to_be_focused()
    # openQuote: the card stands on the target's composer; the person is asked, whatever the other page says.
    page.evaluate(
        "message => tell(message)",
        {"id": 2, "type": "openQuote", "quote": quote, "target": target.channel, "confirmed": True},
    )
    confirm(chat)
    expect(chat.locator("#title")).to_have_text("Lakes")
    expect(chat.locator(".quote-pending")).to_contain_text("Message from “Boats”")
    chat.get_by_role("button", name="Take the quote off").click()
    # quoteRequest: where to is the person's to say.
    page.evaluate("message => tell(message)", {"id": 3, "type": "quoteRequest", "quote": quote})
    expect(chat.locator("#target-search")).to_be_focused()
    chat.locator("#target-search").fill("Lakes")
    expect(chat.locator(".target-chooser [role=option]").first).to_contain_text("Lakes")
    chat.locator(".target-chooser [role=option]").first.click()
    confirm(chat)
    expect(chat.locator(".quote-pending")).to_be_visible()
    chat.get_by_role("button", name="Take the quote off").click()
    # send: with a quote, which the person confirms.
    page.evaluate(
        "message => tell(message)",
        {"id": 4, "type": "send", "channel": target.channel, "text": "Look", "quote": quote, "confirmed": True},
    )
    confirm(chat)
    expect(chat.locator('.from-assistant[data-state="complete"]')).to_contain_text("I see.")
    row = Message.objects.get(thread=target, role="user")
    assert (row.text, row.meta["quote"]["text"]) == ("Look", "Forty metres.")
    page.wait_for_function("heard.filter((one) => one.type === 'answer' && one.ok).length === 4")


def test_the_embedding_page_hears_that_somebody_began_to_quote(desk, source, quote):
    page, chat, _stranger = desk
    answer_to(page, {"id": 1, "type": "reveal", **quote})
    chat.locator(".from-assistant[data-message]").hover()
    chat.locator(".act-quote").click()
    page.wait_for_function("heard.some((one) => one.type === 'quoteRequest')")
    told = page.evaluate("heard.find((one) => one.type === 'quoteRequest')")
    assert (told["quote"], told["title"]) == (quote, "Boats")
    assert "Forty metres." not in str(told)


def test_what_cannot_be_done_is_answered_with_a_reason(desk, target, quote):
    page, chat, _stranger = desk
    gone = {**quote, "message_id": 10**9}
    there = {"target": target.channel}
    pointer = "A quote points at a message"
    unknown = "There is no such conversation"
    for number, (message, sentence) in enumerate(
        [
            ({"type": "openQuote", "quote": gone, **there}, "There is no such message"),
            ({"type": "openQuote", "quote": "nonsense", **there}, pointer),
            ({"type": "openQuote", "quote": {**quote, "message_id": "7"}, **there}, pointer),
            ({"type": "openQuote", "quote": None, **there}, "Say which quote"),
            ({"type": "openQuote", **there}, "Say which quote"),
            ({"type": "openQuote", "quote": quote}, "Say which quote"),
            ({"type": "openQuote", "quote": quote, "target": ["x"]}, "Say which quote"),
            ({"type": "openQuote", "quote": quote, "target": "zzzzyyyyxxxx"}, unknown),
            ({"type": "quoteRequest"}, "Say which quote"),
            ({"type": "quoteRequest", "quote": [7]}, pointer),
            ({"type": "quoteRequest", "quote": gone}, "There is no such message"),
            ({"type": "reveal"}, unknown),
            ({"type": "reveal", "channel": {"x": 1}}, unknown),
            ({"type": "reveal", "channel": "../../admin"}, unknown),
            ({"type": "reveal", "channel": "zzzzyyyyxxxx"}, unknown),
            ({"type": "reveal", **quote, "message_id": "seven"}, "The quoted message is not there any more."),
            ({"type": "send", "channel": target.channel, "text": " "}, "Write something first."),
            ({"type": "send", "channel": target.channel, "text": 7}, "Write something first."),
            ({"type": "send", "channel": "zzzzyyyyxxxx", "text": "Look"}, unknown),
            ({"type": "send", "channel": target.channel, "text": "Look", "quote": "nonsense"}, pointer),
            ({"type": "send", "channel": target.channel, "text": "x" * 1_000_001}, "Shorten or split it."),
        ]
    ):
        refused = answer_to(page, {"id": f"n{number}", **message})
        assert refused["ok"] is False and sentence in refused["reason"], (message, refused)
    expect(chat.locator(".target-chooser")).to_have_count(0)
    page.evaluate(
        "message => tell(message)", {"id": 5, "type": "send", "channel": target.channel, "text": "Look", "quote": quote}
    )
    chat.get_by_role("dialog", name="Hand it over?").get_by_role("button", name="Cancel").click()
    page.wait_for_function("heard.some((one) => one.id === 5 && one.ok === false)")
    assert not InboxItem.objects.exists()


def test_words_are_answered_when_the_server_judged_them(desk, alice, source, target, quote):
    """Here it refuses: what they quote was erased while the person was asked."""
    page, chat, _stranger = desk
    narrow(source, acting_user=alice, category="work")
    page.evaluate(
        "message => tell(message)", {"id": 1, "type": "send", "channel": target.channel, "text": "Look", "quote": quote}
    )
    dialog = chat.get_by_role("dialog", name="Hand it over?")
    expect(dialog).to_contain_text("“work”")
    erase(source, acting_user=alice)
    dialog.get_by_role("button", name="Hand over").click()
    page.wait_for_function("heard.some((one) => one.id === 1)")
    answer = page.evaluate("heard.find((one) => one.id === 1)")
    assert (answer["ok"], "There is no such message" in answer["reason"]) == (False, True)
    expect(chat.locator("#words-box")).to_have_value("Look")
    expect(chat.locator(".quote-pending")).to_contain_text("Message from “Boats”")
    assert not InboxItem.objects.exists()


def test_another_window_and_another_origin_are_refused(desk, server, target, quote, emulator):
    emulator.answer(text("Aye."))
    page, chat, stranger = desk
    sibling = page.frame("sibling")
    # Windows that do not embed the page: of an origin that nobody named, and of the one that is named.
    for window, kind in itertools.product((stranger, sibling), ("quoteRequest", "openQuote", "reveal", "send")):
        window.evaluate(
            "message => tell(message)",
            {
                "id": 1,
                "type": kind,
                "channel": target.channel,
                "text": "stranger's words",
                "quote": quote,
                "target": target.channel,
            },
        )
    # The embedding page itself, as it looks to a page whose configuration does not name its origin.
    chat.evaluate(
        """async () => {
          const { Bridge } = await import("/static/chat/embed.js");
          window.carried = [];
          const handlers = { send: (message) => carried.push(message) };
          window.others = new Bridge({ origins: ["https://desk.example.org"], handlers });
          window.none = new Bridge({ origins: [], handlers });
        }"""
    )
    page.evaluate("tell({ id: 2, type: 'unknown' }); tell({ id: 3, maxclaw: 2, type: 'send', text: 'of no version' })")
    answer_to(page, {"id": 4, "type": "send", "channel": target.channel, "text": "words of the desk"})
    expect(chat.locator('.from-assistant[data-state="complete"]')).to_contain_text("Aye.")
    expect(chat.locator(".from-user")).to_have_count(1)
    assert chat.evaluate("[carried, others.origin, none.origin]") == [[], None, None]
    assert list(InboxItem.objects.values_list("text", flat=True)) == ["words of the desk"]
    expect(chat.locator("dialog[open]")).to_have_count(0)
    assert stranger.evaluate("heard") == sibling.evaluate("heard") == []
    assert {one["id"] for one in page.evaluate("heard") if one["type"] == "answer"} == {4}


def test_a_page_of_another_origin_cannot_embed_it(server, open_tab, alice, target, settings):
    settings.EMBED_ORIGINS = ["https://desk.example.org"]
    with site(HOST.format(chat=f"{server.url}/c/{target.channel}/", stranger="about:blank")) as origin:
        tab = open_tab(server, alice)
        tab.forgive = lambda _problem: True  # the browser says that it refused the frame
        tab.page.goto(origin)
        tab.page.wait_for_timeout(500)
        chat = tab.page.frame("chat")
        assert chat is None or "words-box" not in chat.content()
        assert any("frame-ancestors" in problem for problem in tab.problems)
