"""What other tests do with a mouse or by name, with nothing but a keyboard: Tab, arrows, Enter, Space, and typing."""

import io
import json

import pytest
from django.core.management import call_command
from playwright.sync_api import expect

from agent import import_jobs
from agent.models import ImportJob
from llm.emulator import client as emulated
from tests.agent import exports
from tests.browser import PHONE
from tests.chat.browser.hands import Keyboard, answers, connected, words
from threads.lifecycle import create_thread

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def ask(question, *options):
    return emulated.tool_use("ask_user_question", {"question": question, "options": list(options)})


def test_questions_are_answered_and_thoughts_unfolded(open_chat, alice, emulator):
    emulator.answer(ask("Which colour?", "Red", "Blue"))
    emulator.answer(ask("How many?"))
    emulator.answer(emulated.thinking("Two red ones."), emulated.text("Done."))
    page = open_chat(alice)
    hand = Keyboard(page)
    hand.write("Ask me")
    card = page.locator(".question-card.open")
    hand.press(card.get_by_role("button", name="Blue"))
    expect(card.locator(".question")).to_have_text("How many?")
    hand.reach(card.get_by_role("textbox"))
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(answers(page).last).to_have_text("Done.")
    expect(page.locator(".answer-given")).to_contain_text(["Blue", "two"])
    fold = page.locator("details.thinking summary")
    expect(page.locator(".thinking-text")).to_be_hidden()
    hand.press(fold)
    expect(page.locator(".thinking-text")).to_have_text("Two red ones.")
    page.keyboard.press(" ")
    expect(page.locator(".thinking-text")).to_be_hidden()
    expect(fold).to_be_focused()


def test_a_conversation_from_json_lines_is_found_by_its_title_and_gone_on_with(open_chat, alice, emulator, tmp_path):
    said = [("user", "My boat is red."), ("assistant", "A red boat, then."), ("user", "And it leaks.")]
    lines = [
        {"conversation": "old", "title": "Boats", "role": role, "text": text, "created": f"2024-03-01T08:0{minute}:00Z"}
        for minute, (role, text) in enumerate(said)
    ]
    file = tmp_path / "old.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    call_command("import_conversations", str(file), user="alice", stdout=io.StringIO())
    create_thread(alice, title="Trains")
    page = open_chat(alice)
    page.keyboard.press("Control+k")
    page.keyboard.type("boa")
    expect(page.locator("#conversations .name")).to_have_text(["Boats"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_have_text("Boats")
    expect(words(page)).to_have_text(["My boat is red.", "And it leaks."])
    expect(answers(page)).to_have_text(["A red boat, then."])
    page.keyboard.press("Control+k")
    page.keyboard.press("Escape")
    expect(page.locator("#conversations .name")).to_have_text(["Main", "Trains", "Boats"])
    emulator.answer(emulated.text("It is red and leaks. " * 4), pace="10:20")
    Keyboard(page).write("What did I say of it?")
    expect(page.locator(".prose.growing")).to_contain_text("It is red")
    expect(answers(page).last).to_contain_text("leaks. It is red")
    asked = json.dumps(emulator.bodies()[-1]["messages"])
    assert all(text in asked for _role, text in said)


def test_a_file_is_chosen_imported_and_read_also_on_a_small_screen(server, open_tab, alice, tmp_path):
    file = exports.write_json(tmp_path / "conversations.json", [exports.chatgpt_conversation(0), {"title": "Odd one"}])
    page = open_tab(server, alice).page
    page.on("filechooser", lambda _chooser: None)  # asks the browser to tell of it; while a key is pressed is too late
    page.goto(f"{server.url}/import/")
    hand = Keyboard(page)
    hand.reach(page.locator("#id_file"))
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(file)
    expect(page.locator("#chosen")).to_have_text("conversations.json")
    for count, size in enumerate((page.viewport_size, PHONE["viewport"]), start=1):
        page.set_viewport_size(size)
        if count > 1:
            page.locator("#id_file").set_input_files(file)
        hand.press(page.get_by_role("button", name="Import", exact=True))
        expect(page.get_by_text("Waiting for its turn…")).to_be_visible()
        hand.press(page.get_by_role("button", name="Cancel"))
        expect(page.get_by_text("Cancelled.")).to_have_count(count)
        assert ImportJob.objects.latest("pk").state == "cancelled"

    page.locator("#id_file").set_input_files(file)
    hand.press(page.get_by_role("button", name="Import", exact=True))
    expect(page.get_by_text("Waiting for its turn…")).to_be_visible()
    import_jobs.run(ImportJob.objects.latest("pk").pk)
    expect(page.get_by_text("Imported.", exact=True)).to_be_visible()
    left_out = page.locator(".left-out li").first
    expect(left_out).to_contain_text("entry 2 (“Odd one”)")
    hand.press(page.locator(".left-out summary").first)
    expect(left_out).to_be_hidden()
    hand.press(page.get_by_role("link", name="To the conversations").last)
    connected(page)
    hand.press(page.get_by_role("button", name="Show the conversations"))
    hand.press(page.get_by_role("link", name="Talk 0", exact=True))
    expect(answers(page).last).to_have_text("Welcome 0")
    expect(page.locator("#sidebar")).to_be_hidden()
