"""A socket that is killed again and again in the middle of an answer: nothing is missed, and nothing comes twice."""

import random
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from agent.models import TurnEvent
from llm.emulator import client as emulated
from tests.chat.browser.hands import answers
from threads.models import Message

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

KILLS = 10
WORDS = 240
# The page's sockets are its own affair: read along what comes over each of them.
LISTEN = """
  window.numbers = [];
  window.sockets = 0;
  const Real = WebSocket;
  WebSocket = class extends Real {
    constructor(...given) {
      super(...given);
      sockets += 1;
      this.addEventListener("message", message => {
        const frame = JSON.parse(message.data);
        if (frame.type === "events") numbers.push(...frame.events.map(event => event.number));
        if (frame.type === "snapshot") numbers.push(["snapshot", frame.snapshot.event]);
      });
    }
  };
"""


@pytest.mark.parametrize("seed", [1])
def test_the_page_holds_what_the_database_holds_however_often_its_socket_dies(server, open_tab, alice, emulator, seed):
    random_ = random.Random(seed)
    tab = open_tab(server, alice)
    tab.forgive = lambda problem: "WebSocket" in problem  # the browser's own words about a socket that died
    page = tab.page
    page.add_init_script(LISTEN)
    page.goto(server.url)
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    text = " ".join(f"word{number:03}" for number in range(WORDS))
    offsets = sorted(random_.sample(range(10, int(len(text) * 0.9)), KILLS))
    emulator.answer(emulated.text(text), pace="10:60")
    page.locator("#words-box").fill("Talk")
    page.keyboard.press("Enter")
    killed = grew = 0
    deadline = time.monotonic() + 60
    while killed < KILLS and time.monotonic() < deadline:
        if shown(page) < offsets[killed] and answers(page).count() == 0:
            page.wait_for_timeout(10)
            continue
        before = page.evaluate("sockets")
        grew += Message.objects.filter(role="assistant", meta__state="streaming").exists()
        server.kill_sockets()
        killed += 1
        while page.evaluate("sockets") == before:
            # At once, as when the network comes back; its own pause is tested elsewhere.
            assert time.monotonic() < deadline
            page.evaluate("dispatchEvent(new Event('online'))")
            page.wait_for_timeout(5)
        expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    assert killed == KILLS
    assert grew > KILLS // 2, "most of them were to strike while the answer grew"
    expect(answers(page)).to_have_text([text])
    assert Message.objects.get(role="assistant").text == text
    expect(page.locator("#stop")).to_be_hidden()

    numbers = page.evaluate("numbers")
    told = [number for number in numbers if isinstance(number, int)]
    first = next(number for number in numbers if not isinstance(number, int))[1]
    last = TurnEvent.objects.order_by("-number").values_list("number", flat=True)[0]
    assert told == list(range(first + 1, last + 1)), "an event came twice, or not at all"


def shown(page: Any) -> int:
    length: int = page.evaluate("document.querySelector('.prose.growing')?.textContent.length ?? 0")
    return length
