"""A conversation of ten thousand messages: opened by its end, read back by pages, never held whole."""

import json
import random

import pytest
from django.db import transaction
from playwright.sync_api import expect

from llm.emulator import client as emulated
from tests.chat.browser.hands import Mouse, answers, connected
from threads.lifecycle import create_thread
from threads.models import Message
from threads.transcript import NewMessage, append_many, live_generation, lock_thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MESSAGES = 10_000
ROWS_MAX = 400  # static/chat/history.js: WINDOW_MAX_MESSAGES
OPENED_ROWS = 100
# JavaScript's heap after a collection. Opened it takes 2.0 MiB, with a full window 2.8 MiB.
HEAP_MAX_BYTES = 8 * 2**20
# Of the whole page. With a full window it has 12,500.
ELEMENTS_MAX = 20_000
TASK = "ThreadControllerImpl::RunTask"  # in Chromium's traces
PAGES_READ = 30
TURNS_MAX = 40
# Of the page's main thread, in its own processor time, whoever else the machine works for: what it works for 100
# earlier messages, half a second on a busy machine, and its longest task, a tenth of one, in which nothing moves.
PAGE_MAX_SECONDS = 2.0
TASK_MAX_SECONDS = 0.4


def long_thread(owner, messages=MESSAGES):
    thread = create_thread(owner, title="Long")
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        rows = []
        for number in range(messages):
            role = Message.Role.ASSISTANT if number % 2 else Message.Role.USER
            said = "Some **words** and `code` that people write. " * 8 if number % 2 else "Why?"
            rows.append(NewMessage(role=role, text=f"message {number}. {said}"))
        append_many(locked, live_generation(locked), rows)
    return thread


def metric(session, name) -> float:
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}[name]


def heap(session) -> int:
    session.send("HeapProfiler.collectGarbage")
    return int(metric(session, "JSHeapUsedSize"))


def longest_task(trace: bytes) -> float:
    """Seconds of its own processor time that the longest task of a page's main thread took."""
    events = json.loads(trace)["traceEvents"]
    named = [event for event in events if event["name"] == "thread_name"]
    mains = {(one["pid"], one["tid"]) for one in named if one["args"]["name"] == "CrRendererMain"}
    tasks = [event for event in events if event["name"] == TASK and (event["pid"], event["tid"]) in mains]
    return float(max(task["tdur"] for task in tasks if "tdur" in task)) / 1e6


def first_shown(page) -> int:
    text = page.locator("#timeline > .message :is(.bubble, .prose)").first.inner_text()
    return int(text.split(".")[0].removeprefix("message "))


def test_ten_thousand_messages_are_read_back_within_bounds(server, open_tab, alice, record_property):
    thread = long_thread(alice)
    page = open_tab(server, alice, viewport={"width": 1280, "height": 860}).page
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"{server.url}/c/{thread.channel}/")
    connected(page)
    rows = page.locator("#timeline > .message")
    expect(rows).to_have_count(OPENED_ROWS)
    expect(rows.last).to_be_in_viewport()
    opened = heap(session)

    most = most_elements = 0
    work = []
    browser = page.context.browser
    browser.start_tracing(page=page, categories=["toplevel"])
    for _ in range(PAGES_READ):
        before = first_shown(page)
        worked = metric(session, "TaskDuration")
        # The words at the top of the view stay where they are while what is above them arrives.
        place = page.evaluate(
            """async () => {
              const scroller = document.getElementById("scroller");
              scroller.scrollTop = Math.min(scroller.scrollTop, 900);
              const top = scroller.getBoundingClientRect().top;
              const rows = [...document.querySelectorAll("#timeline > .message")];
              const row = rows.find(node => node.getBoundingClientRect().bottom > top + 1);
              const was = row.getBoundingClientRect().top;
              const first = () => document.querySelector("#timeline > .message");
              const before = first();
              for (let waited = 0; waited < 500 && first() === before; waited += 1)
                await new Promise(resolve => setTimeout(resolve, 10));
              return Math.abs(row.getBoundingClientRect().top - was);
            }"""
        )
        assert place < 2
        assert first_shown(page) < before
        work.append(metric(session, "TaskDuration") - worked)
        most = max(most, rows.count())
        most_elements = max(most_elements, page.evaluate("document.getElementsByTagName('*').length"))
    assert most <= ROWS_MAX
    assert most_elements <= ELEMENTS_MAX
    before, worked = first_shown(page), metric(session, "TaskDuration")
    for _turn in range(TURNS_MAX):
        wheel = {"x": 640, "y": 400, "yDistance": 2_000, "speed": 20_000, "gestureSourceType": "mouse"}
        session.send("Input.synthesizeScrollGesture", wheel)
        if first_shown(page) < before:
            break
    assert first_shown(page) < before, "the wheel reads nothing earlier"
    work.append(metric(session, "TaskDuration") - worked)
    longest = longest_task(browser.stop_tracing())
    assert min(work) > 0 and max(work) < PAGE_MAX_SECONDS
    assert 0 < longest < TASK_MAX_SECONDS
    assert heap(session) < HEAP_MAX_BYTES
    record_property("heap", {"opened": opened, "read back": heap(session)})
    record_property("elements", most_elements)
    record_property("longest task, seconds", longest)
    record_property("seconds of work for a page", {"mean": sum(work) / len(work), "most": max(work)})

    # Down again, page by page, and then to the latest at once.
    far_back = first_shown(page)
    for _ in range(4):
        page.evaluate("document.getElementById('scroller').scrollTop = 1e9")
        page.wait_for_timeout(150)
    assert first_shown(page) > far_back
    assert rows.count() <= ROWS_MAX
    page.get_by_role("button", name="To the latest").click()
    expect(rows.last).to_contain_text(f"message {MESSAGES - 1}.")
    expect(rows.last).to_be_in_viewport()
    assert rows.count() <= ROWS_MAX


def test_what_was_rewound_is_folded_whole_and_never_takes_the_place_of_what_stands(open_chat, alice, emulator):
    """Far more is taken out than a page holds: what stands stays, the number is right, and all of it can be read."""
    thread = long_thread(alice, 700)
    page = open_chat(alice, thread.channel)
    hand = Mouse(page)
    fold = page.locator(".rewound")
    target = thread.messages.order_by("id")[20]
    page.evaluate("id => { location.hash = `#m${id}`; location.reload(); }", target.pk)
    connected(page)
    expect(page.locator(f'[data-message="{target.pk}"]')).to_be_focused()
    hand.message_menu(page.locator(f'[data-message="{target.pk}"]'))
    hand.choose("Go back to here")
    expect(fold.locator("summary")).to_have_text("679 messages taken out of the conversation")
    expect(page.locator("#timeline > .message")).to_have_count(21)
    emulator.answer(emulated.text("Here I am."))
    hand.write("Are you there?")
    expect(answers(page).last).to_have_text("Here I am.")
    page.wait_for_timeout(300)  # whatever the page would fetch of its own
    expect(page.locator("#timeline > .message")).to_have_count(23)
    expect(page.locator("#timeline > .message").last).to_be_in_viewport()

    # Other words far back: the same, with what was said since in the fold too.
    emulator.answer(emulated.text("Another one."))
    hand.message_menu(page.locator(f'[data-message="{thread.messages.order_by("id")[10].pk}"]'))
    hand.choose("Edit and resend")
    page.locator(".edit-box").fill("Why not?")
    hand.press(page.locator(".edit-form").get_by_role("button", name="Send"))
    expect(answers(page).last).to_have_text("Another one.")
    expect(page.locator("#timeline > .message")).to_have_count(12)
    expect(fold.locator("summary")).to_have_text("692 messages taken out of the conversation")

    # All of it can be read, page by page.
    hand.press(fold.locator("summary"))
    rows = fold.locator(".message")
    expect(rows).to_have_count(100)
    expect(rows.last).to_contain_text("Here I am.")
    hand.press(fold.get_by_role("button", name="Show earlier messages"))
    expect(rows).to_have_count(200)
    expect(rows.first).to_contain_text("message 502.")


def test_a_window_of_history_is_always_a_stretch_of_it(open_chat, alice):
    """Random walks up and down: what is held has no hole, no more than its bound, and meets the end again."""
    page = open_chat(alice)
    seeds = [random.Random(seed).random() for seed in range(40)]
    problems = page.evaluate(
        """async seeds => {
          const { pageUp, pageDown, tail, WINDOW_MAX_MESSAGES } = await import("/static/chat/history.js");
          const all = Array.from({ length: 1500 }, (_, index) => ({ id: index * 3 + 1 }));
          const problems = [];
          for (let seed of seeds) {
            const random = () => { seed = (seed * 9301 + 0.49297) % 1; return seed; };
            let held = { state: { messages: all.slice(-100), has_earlier: true }, past: null };
            for (let step = 0; step < 60; step += 1) {
              const shown = held.past ?? held.state;
              if (random() < 0.6) {
                const before = all.findIndex(row => row.id === shown.messages[0].id);
                const messages = all.slice(Math.max(before - 100, 0), before);
                if (messages.length) held = pageUp(held.state, held.past, { messages, has_earlier: before > 100 });
              } else if (held.past) {
                const after = all.findIndex(row => row.id === shown.messages.at(-1).id) + 1;
                const page = { messages: all.slice(after, after + 100), has_later: after + 100 < all.length };
                held = pageDown(held.state, held.past, page);
              } else held.state = tail(held.state, 100 + Math.floor(random() * 200));
              for (const stretch of [held.state, held.past].filter(Boolean)) {
                const first = all.findIndex(row => row.id === stretch.messages[0].id);
                if (stretch.messages.some((row, place) => row !== all[first + place])) problems.push("a hole");
                if (stretch.has_earlier !== first > 0) problems.push("has_earlier");
                if (stretch.messages.length > WINDOW_MAX_MESSAGES) problems.push("too many");
              }
              if (held.state.messages.at(-1).id !== all.at(-1).id) problems.push("the end was lost");
            }
          }
          return problems;
        }""",
        seeds,
    )
    assert problems == []
