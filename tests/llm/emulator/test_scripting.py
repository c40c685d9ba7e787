"""Tests script the emulator answer by answer and read what it was asked."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from llm.emulator.client import ControlError, tool_use
from tests.emulator_server import ROOT, running_emulator
from tests.llm.emulator.asking import MAIN, TOOLS, ask, assistant, call, refusal, result, user


def said(message):
    return message.content[0].text


def test_answers_come_in_the_order_of_the_queue(emulator, client):
    emulator.answer("First.")
    emulator.answer("Second.", times=2)
    assert [said(ask(client, "hi")) for _ in range(3)] == ["First.", "Second.", "Second."]
    assert emulator.state()["answers_waiting"] == 0


def test_an_answer_waits_for_the_request_it_fits(emulator, client):
    emulator.answer("About cats.", match={"contains": "cat"})
    emulator.answer("From the light model.", match={"model": "emulator-light"})
    emulator.answer("After a dog was named.", match={"any_contains": "dog"})
    emulator.answer("With a tool.", match={"tool": "clock"})
    emulator.answer("Everything else.", times=-1)
    assert said(ask(client, "hi")) == "Everything else."
    assert said(ask(client, "a dog", assistant("Yes."), "hi")) == "After a dog was named."
    assert said(ask(client, "a cat", model="emulator-light")) == "About cats."
    assert said(ask(client, "hi", model="emulator-light")) == "From the light model."
    assert said(ask(client, "hi", tools=TOOLS)) == "With a tool."


def test_contains_looks_at_tool_results_too(emulator, client):
    emulator.answer("It was noon.", match={"contains": "noon"})
    reply = ask(client, "Time?", assistant(call("toolu_1")), user(result("toolu_1", "noon")), tools=TOOLS)
    assert said(reply) == "It was noon."


def test_a_stop_reason_can_be_scripted(emulator, client):
    emulator.answer("I would rather not.", stop_reason="refusal")
    assert ask(client, "hi").stop_reason == "refusal"


def test_malformed_answers_are_refused_in_words(emulator):
    with pytest.raises(ControlError, match="unknown match keys: colour"):
        emulator.answer("x", match={"colour": "red"})
    with pytest.raises(ControlError, match="no block of an answer"):
        emulator.answer({"type": "video"})
    with pytest.raises(ControlError, match="a pace is"):
        emulator.set_pace("quick")
    assert emulator.state()["answers_waiting"] == 0


def test_the_log_keeps_bodies_as_they_came_and_no_keys(emulator, client):
    ask(client, "héllo  ☂")
    (entry,) = emulator.requests()
    assert json.loads(entry["body"])["messages"][0]["content"][0]["text"] == "héllo  ☂"
    assert entry["headers"]["authorization"] == "redacted"
    assert "test-key" not in json.dumps(entry)
    assert (entry["model"], entry["status"], entry["outcome"]) == (MAIN, 200, "completed")
    assert entry["answered_by"] == "mind"
    assert entry["usage"]["input_tokens"] > 0


def test_the_log_has_a_cap_and_can_leave_bodies_out(emulator, client):
    emulator.settings(log_limit=3, bodies=False)
    for _ in range(5):
        ask(client, "hi")
    log = emulator.requests()
    assert len(log) == 3
    assert all(entry["body"] is None for entry in log)
    assert emulator.requests(since=log[1]["number"]) == log[2:]


def test_refusals_and_counting_are_logged_too(emulator, client):
    client.messages.count_tokens(model=MAIN, messages=[user("hi")])
    refusal(client, "hi", max_tokens=20_000)
    counted, refused = emulator.requests()
    assert (counted["path"], counted["outcome"]) == ("/v1/messages/count_tokens", "completed")
    assert (refused["outcome"], refused["status"]) == ("refused", 400)
    assert refused["error"].startswith("max_tokens: 20000 > 16384")
    assert emulator.bodies() == [json.loads(refused["body"])]


def test_reset_forgets_everything(emulator, client):
    emulator.answer("Left over.")
    emulator.fault("status", status=500)
    emulator.register_model("extra")
    emulator.reset()
    assert said(ask(client, "hi")) != "Left over."
    assert len(emulator.requests()) == 1
    assert "extra" not in {model.id for model in client.models.list()}


def test_the_control_interface_answers_no_web_page_and_no_stranger(emulator):
    url = f"{emulator.base_url}/_control/state"
    assert httpx2.get(url).status_code == 200
    assert httpx2.get(url, headers={"origin": "http://evil.example"}).status_code == 403
    assert httpx2.get(url, headers={"host": "evil.example"}).status_code == 403
    reset = httpx2.post(f"{emulator.base_url}/_control/reset", headers={"origin": "null"})
    assert reset.status_code == 403


def test_the_clock_starts_shifted(client):
    with running_emulator(clock_shift_seconds=86_400) as shifted, running_emulator() as plain:
        assert shifted.state()["now"][:10] > plain.state()["now"][:10]


def test_a_taken_port_is_said_in_one_line(emulator):
    port = emulator.base_url.rpartition(":")[2]
    ended = subprocess.run(
        [sys.executable, "-m", "llm.emulator", "--port", port], cwd=ROOT, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"cannot listen on 127.0.0.1:{port}: ")
    assert ended.stderr.count("\n") == 1


def test_it_dies_with_its_parent():
    start = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-m', 'llm.emulator', '--port', '0', "
        "'--die-with-parent'], "
        "stdout=subprocess.PIPE, text=True); "
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", start], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not _runs(child)


def _runs(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_tool_call_gets_an_id_when_a_script_gives_none(emulator, client):
    emulator.answer(tool_use("clock"), tool_use("clock"))
    ids = {block.to_dict()["id"] for block in ask(client, "hi", tools=TOOLS).content}
    assert len(ids) == 2
    assert all(str(call_id).startswith("toolu_") for call_id in ids)
