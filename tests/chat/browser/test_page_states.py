"""Every state of the chat page: nothing that a screen reader or a small screen stumbles over, in any look."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from llm.emulator import client as emulated
from tests.browser import PHONE
from tests.browser_checks import assert_accessible, assert_fits
from tests.chat.browser.conftest import DESKTOP
from tests.chat.browser.hands import answers, connected
from tests.chat.records import say
from threads.lifecycle import archive, create_thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

LOOKS: dict[str, dict[str, Any]] = {
    "desktop, light, English": {**DESKTOP, "color_scheme": "light"},
    "phone, dark, Chinese": {**PHONE, "color_scheme": "dark", "locale": "zh-CN"},
}
MARKDOWN = """A **table**:

| a | b |
|---|--:|
| 1 | 2 |

```python
def f():
    return 1  # one
```

> quoted

[link](https://example.org)"""


def check(page: Page) -> None:
    page.wait_for_timeout(160)  # what fades in has its colours only afterwards
    assert_accessible(page)
    assert_fits(page)


@pytest.mark.parametrize("look", LOOKS)
def test_every_state_is_accessible_and_fits(server, open_tab, alice, emulator, look):
    if "Chinese" in look:
        alice.language = "zh-hans"
        alice.save()
    sign_in = open_tab(server, **LOOKS[look]).page
    sign_in.goto(f"{server.url}/login/")
    check(sign_in)

    tab = open_tab(server, alice, **LOOKS[look])
    page = tab.page
    page.goto(server.url)
    connected(page)
    check(page)  # nothing yet

    emulator.answer(emulated.thinking("Let me see."), emulated.text(MARKDOWN))
    page.locator("#words-box").fill("Show me")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_count(1)
    page.locator(".thinking summary").click()
    check(page)  # an answer

    channel = page.url.rstrip("/").split("/")[-1]
    emulator.answer(emulated.text("I look."), emulated.tool_use("message_history_read", {"channel": channel}))
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which?", "options": ["Red", "Blue"]}))
    page.locator("#words-box").fill("Look it up")
    page.keyboard.press("Enter")
    expect(page.locator(".question-card.open")).to_be_visible()
    page.locator(".tool-card summary").click()
    check(page)  # a tool's card and a question

    emulator.answer(emulated.text("word " * 400), pace="10:20")
    page.locator(".question-card .options .button").first.click()
    expect(page.locator(".prose.growing")).to_contain_text("word word")
    page.locator("#words-box").fill("Wait with this")
    page.keyboard.press("Enter")
    expect(page.locator('[data-fate="queued"]')).to_be_visible()
    check(page)  # an answer that grows, words that wait
    page.locator(".take-back").click()
    expect(page.locator("[data-fate]")).to_have_count(0)
    page.locator("#stop").click()
    expect(page.locator("#stop")).to_be_hidden()
    check(page)  # stopped

    first = page.locator(".from-assistant").first
    first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("menu")).to_be_visible()
    check(page)  # a message's menu
    page.get_by_role("menuitem").last.click()
    expect(page.locator(".rewound")).to_have_count(1)
    page.locator(".rewound summary").click()
    check(page)  # rewound
    page.locator(".from-user .act-edit").first.click()
    check(page)  # words being changed
    page.keyboard.press("Escape")

    page.locator("#meter").click()
    check(page)  # the meter
    page.keyboard.press("Escape")
    page.locator("#whole").click()
    page.get_by_role("menuitem").first.click()
    expect(page.locator("dialog[open]")).to_be_visible()
    check(page)  # a new name
    page.keyboard.press("Escape")
    page.keyboard.press("Control+/")
    check(page)  # the list of keys
    page.keyboard.press("Escape")

    archived = create_thread(alice, title="Old boats")
    say(archived, "old words")
    archive(archived, acting_user=alice)
    if "phone" in look:
        page.locator("#open-drawer").click()
        page.wait_for_timeout(300)
    page.locator("#archived").click()
    expect(page.locator("#conversations .name")).to_have_text(["Old boats"])
    check(page)  # the archive
    page.locator("#search").fill("nothing of the kind")
    expect(page.locator("#conversations .empty")).to_be_visible()
    check(page)  # nothing found
    page.locator("#search").fill("")
    page.locator("#archived").click()
    page.locator("#user-menu summary").click()
    check(page)  # the account's menu
    page.keyboard.press("Escape")
    page.locator("#conversations .row-menu").nth(1).click(force=True)
    page.get_by_role("menuitem").last.click()
    expect(page.locator(".toast .undo")).to_be_focused()
    check(page)  # deleted

    page.goto(f"{server.url}/c/{archived.channel}/")
    expect(page.locator(".bubble")).to_have_text("old words")
    check(page)  # an archived conversation
    emulator.fault("status", status=400, times=-1)
    page.goto(server.url)
    connected(page)
    page.locator("#words-box").fill("Hello")
    page.keyboard.press("Enter")
    expect(page.locator(".notice .again")).to_be_visible()
    check(page)  # a failed turn
    page.goto(f"{server.url}/c/nosuchthread/")
    check(page)  # nothing there
    # The browser has its own words about what is not there, and goes on saying so until the page is closed.
    tab.forgive = lambda problem: "404" in problem or "WebSocket" in problem
    page.goto(server.url)
    connected(page)
    server.stop()
    expect(page.locator("#connection")).to_have_attribute("data-state", "reconnecting")
    check(page)  # the server is gone


def test_a_growing_answer_is_not_read_out_piece_by_piece(open_chat, alice, emulator):
    """What is live for screen readers changes when an answer begins and when it is whole, not with each word."""
    emulator.answer(emulated.text(" ".join(f"word{number}" for number in range(40))), pace="10:30")
    page = open_chat(alice)
    page.evaluate(
        """() => {
          window.heard = [];
          const announcer = document.getElementById("announcer");
          const added = (records) =>
            records.flatMap((record) => [...record.addedNodes]).map((node) => node.textContent);
          new MutationObserver((records) => heard.push(...added(records))).observe(announcer, { childList: true });
        }"""
    )
    live = page.locator("#timeline").evaluate("node => node.closest('[aria-live], [role=log], [role=status]') === null")
    assert live
    page.locator("#words-box").fill("Count")
    page.keyboard.press("Enter")
    expect(answers(page)).to_have_count(1)
    expect(page.locator("#announcer")).to_contain_text("word39")
    assert page.evaluate("heard")[0] == "MaxClaw is answering."
    assert len(page.evaluate("heard")) == 2

    # What interrupts an answer is heard, and so is a question with what may be chosen.
    emulator.answer(emulated.text("lost " * 200), pace="10:10")
    page.locator("#words-box").fill("Talk")
    page.keyboard.press("Enter")
    expect(page.locator(".prose.growing")).to_contain_text("lost lost")
    page.locator("#stop").click()
    expect(page.locator("#announcer")).to_contain_text("Stopped.")
    assert re.match(r"MaxClaw: lost lost.*The answer was interrupted here\.$", page.evaluate("heard")[-2])
    emulator.answer(emulated.tool_use("ask_user_question", {"question": "Which?", "options": ["Red", "Blue"]}))
    page.locator("#words-box").fill("Ask me")
    page.keyboard.press("Enter")
    expect(page.locator("#announcer")).to_contain_text("Question: Which? · Red · Blue")


def test_a_tools_result_is_bounded_shown_whole_on_asking_and_code_and_words_are_copied(open_hand, alice, emulator):
    thread = create_thread(alice)
    for _ in range(6):
        say(thread, "long ago " * 150)
    emulator.answer(emulated.text("I look."), emulated.tool_use("message_history_read", {"channel": thread.channel}))
    emulator.answer(emulated.text(MARKDOWN))
    hand = open_hand(alice, thread.channel)
    page = hand.page
    hand.write("Look it up")
    expect(answers(page).last).to_contain_text("quoted")
    card = page.locator(".tool-card")
    hand.press(card.locator("summary"))
    bounded = len(card.locator("pre").inner_text())
    assert bounded <= 4_000
    hand.press(card.locator(".show-all"))
    expect(card.locator(".show-all")).to_have_count(0)
    assert len(card.locator("pre").inner_text()) > bounded

    hand.press(page.locator(".copy-code"))
    expect(page.locator(".copy-code")).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").strip() == "def f():\n    return 1  # one"
    hand.message_menu(page.locator("#timeline > .message").last)
    hand.choose("Copy")
    page.wait_for_timeout(100)
    assert page.evaluate("navigator.clipboard.readText()") == MARKDOWN
    expect(page.locator(".code-place .k").first).to_have_text("def")

    expect(page.locator("#stop")).to_be_hidden()
    hand.message_menu(page.locator("#timeline > .from-user", has_text="long ago").last)
    hand.choose("Go back to here")
    fold = page.locator(".rewound")
    hand.press(fold.locator("summary"))
    hand.press(card.locator("summary"))
    assert len(card.locator("pre").inner_text()) == bounded
    hand.press(card.locator(".show-all"))
    expect(card.locator(".show-all")).to_have_count(0)
    assert len(card.locator("pre").inner_text()) > bounded


def test_a_running_tool_says_how_long_it_has_run(open_chat, alice):
    from agent.models import TaskFrame, ToolCall
    from agent.projection import message_view
    from maxclaw import clock
    from tests.chat.records import tell

    thread = create_thread(alice)
    message = say(thread, "I work.", "assistant")
    frame = TaskFrame.objects.create(thread=thread, owner=alice)
    call = ToolCall.objects.create(
        message=message, thread=thread, owner=alice, frame=frame, call_id="c", tool="slow", status="running",
        started=clock.now(),
    )  # fmt: skip
    page = open_chat(alice, thread.channel)
    tell(thread, ("message", {"message": message_view(message, 1, [call])}))
    status = page.locator(".tool-card .status")
    expect(status).to_have_text(re.compile(r"^running, \d+ s$"))
    seconds = int(status.inner_text().split()[1])
    expect(status).to_have_text(re.compile(rf"^running, ({seconds + 1}|{seconds + 2}) s$"))
