"""A socket that is killed again and again in the middle of an answer: nothing is missed, and nothing comes twice."""

import os
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
# Every run has other offsets. A failure prints its seed; with this variable it is had again.
SEED_VARIABLE = "CUT_SOCKETS_SEED"
PART = """## Part {number}

Some **bold** words, `code` and a [link](https://example.org/{number}).
第{number}段：断线之后什么也不会丢，什么也不重复。🦀👩‍💻🇨🇳

- one & two
- 三 < 四

```python
def part_{number}() -> str:
    return "字 <b>{number}</b>"
```

| a | b |
|---|---|
| {number} | 🙂 |

"""
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


def test_the_page_holds_what_the_database_holds_however_often_its_socket_dies(server, open_tab, alice, emulator):
    seed = int(os.environ.get(SEED_VARIABLE) or random.randrange(2**32))
    print(f"{SEED_VARIABLE}={seed}")
    tab = open_tab(server, alice)
    tab.forgive = lambda problem: "WebSocket" in problem  # the browser's own words about a socket that died
    page = tab.page
    page.add_init_script(LISTEN)
    page.goto(server.url)
    expect(page.locator("#connection")).to_have_attribute("data-state", "connected")
    texts = ["".join(PART.format(number=number) for number in part).strip() for part in (range(4), range(4, 8))]
    offsets = sorted(random.Random(seed).sample(range(10, sum(map(len, texts)) // 2), KILLS))
    emulator.answer(emulated.text(texts[0]), emulated.tool_use("search_memory", {"query": "断线 🦀"}), pace="10:100")
    emulator.answer(emulated.text(texts[1]), pace="10:100")
    page.locator("#words-box").fill("Talk")
    page.keyboard.press("Enter")
    killed = grew = 0
    deadline = time.monotonic() + 60
    while killed < KILLS and time.monotonic() < deadline:
        if shown(page) < offsets[killed] and answers(page).count() < 2:
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
    expect(answers(page)).to_have_count(2)
    expect(page.locator("#stop")).to_be_hidden()
    assert list(Message.objects.filter(role="assistant").order_by("id").values_list("text", flat=True)) == texts
    drawn = [answers(page).all_inner_texts(), page.locator(".tool-card").all_text_contents()]
    html = answers(page).evaluate_all("answers => answers.map(answer => answer.innerHTML)")
    assert len(drawn[1]) == 1 and "断线 🦀" in drawn[1][0]

    numbers = page.evaluate("numbers")
    told = [number for number in numbers if isinstance(number, int)]
    first = next(number for number in numbers if not isinstance(number, int))[1]
    last = TurnEvent.objects.order_by("-number").values_list("number", flat=True)[0]
    assert told == list(range(first + 1, last + 1)), "an event came twice, or not at all"
    page.reload()  # now it is drawn from the database alone
    expect(answers(page)).to_have_count(2)
    assert answers(page).evaluate_all("answers => answers.map(answer => answer.innerHTML)") == html
    assert [answers(page).all_inner_texts(), page.locator(".tool-card").all_text_contents()] == drawn


def shown(page: Any) -> int:
    """How much of the answer is drawn."""
    length: int = page.evaluate(
        "[...document.querySelectorAll('#timeline > .from-assistant > .prose')]"
        ".reduce((sum, prose) => sum + prose.textContent.length, 0)"
    )
    return length
