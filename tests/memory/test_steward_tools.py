"""What the steward does through its tools, and when it is asked to work."""

import json
import threading
from datetime import timedelta

import pytest
from django.db import connection
from django_q.models import OrmQ

from agent.registry import ToolError, ToolOutput
from agent.ticking import run_tick
from llm.emulator.client import text, tool_use
from maxclaw import clock
from memory.models import Episode, Fact
from tests.memory.facts import reading_tool, remember, tool_result
from tests.memory.steward_world import (
    drain,
    import_lines,
    outcomes,
    rests,
    texts,
)
from tests.memory.test_steward import calls, written
from tests.threads.records import exchange, thread_of
from threads.models import Message

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_is_refused_is_answered_with_a_sentence_and_can_be_mended(emulator, alice, bob):
    thread, other, foreign = thread_of(alice), thread_of(alice), thread_of(bob)
    said, answer = exchange(thread, "I live in Lisbon. 我住在里斯本。")
    elsewhere, _answer = exchange(other, "I live in Lisbon.")
    his, _answer = exchange(foreign, "I live in Lisbon.")
    rests(thread)
    bad = [
        written(answer),
        written(elsewhere),
        written(his),
        written(said, evidence=[{"kind": "max-stated", "message_id": 10**12}]),
        written(said, text=""),
        written(said, surprise=1),
    ]
    emulator.answer(*(tool_use("write_fact", arguments) for arguments in bad), tool_use("nonsense", {}))
    emulator.answer(tool_use("write_fact", written(said)), tool_use("retire_fact", {}))
    emulator.answer(text("done"))
    assert drain() == 1
    first, second, third = emulator.bodies()
    refused = [block for block in third["messages"][2]["content"] if block["type"] == "tool_result"]
    assert len(second["messages"]) == 3
    assert [block.get("is_error", False) for block in refused] == [True] * 7
    assert all(str(block["content"]).strip() for block in refused)
    assert texts(alice) == ["Alice lives in Lisbon."]
    assert "m:" not in first["system"][0]["text"]
    assert calls().count() == 3
    assert Episode.objects.get().call == calls().order_by("-pk")[0].pk


def test_a_pointer_is_confirmed_by_a_tool_that_only_reads_and_cites_the_row_that_found_it(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "Where is the design?")
    found = tool_result(thread, text="docs/design.md\ndocs/plan.md")
    rests(thread)
    pointer = {"kind": "pointer", "tone": "remark", "text": "The design is described in docs/design.md."}
    cited = [{"kind": "tool-verified", "message_id": f"m:{found.pk}"}]
    looks = [tool_use("look", {"path": path}) for path in ("docs/design.md", "docs/gone.md", "x" * 5_000)]
    emulator.answer(*looks, tool_use("remember", {}))
    emulator.answer(tool_use("write_fact", {**pointer, "evidence": cited}))
    emulator.answer(tool_use("write_fact", {**pointer, "text": "The plan is in docs/gone.md.", "evidence": cited}))
    emulator.answer(text("done"))
    with reading_tool(answers=look):
        assert drain() == 1
    first, second, _third, last = emulator.bodies()
    assert [tool["name"] for tool in first["tools"]] == ["look", "replace_fact", "retire_fact", "write_fact"]
    results = [(block["content"], block.get("is_error", False)) for block in second["messages"][2]["content"]]
    assert results == [
        ("docs/design.md", False),
        ("There is no docs/gone.md.", True),
        ("x" * 2_000, False),
        ("There is no tool remember.", True),
    ]
    assert last["messages"][-1]["content"][0]["is_error"], "the row holds no such path"
    fact = Fact.objects.get(owner=alice, kind="pointer")
    [proof] = fact.evidence.all()
    assert (fact.text, proof.kind, proof.message_id) == (pointer["text"], "tool-verified", found.pk)


def look(_context, arguments):
    if "gone" in arguments["path"]:
        raise ToolError("There is no docs/gone.md.")
    return ToolOutput(arguments["path"])


def test_a_change_replaces_and_what_is_taken_back_is_retired(emulator, alice):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    rests(thread)
    assert drain() == 1
    [old] = Fact.objects.all()
    later, _answer = exchange(thread, "I live in Porto.")
    rests(thread)
    assert drain() == 1  # by the emulator's rules
    old.refresh_from_db()
    assert old.status == "superseded"
    assert texts(alice) == ["The user said: I live in Porto."]
    exchange(thread, "Forget where I live.")
    rests(thread)
    arguments = {
        "fact_id": f"f:{old.superseded_by_id}",
        "reason": "They asked.",
        "evidence": written(later)["evidence"],
    }
    emulator.answer(tool_use("retire_fact", arguments))
    assert drain() == 1
    assert texts(alice) == []


def test_older_words_take_back_no_fact_that_rests_on_newer_ones(emulator, alice):
    now, _answer = exchange(thread_of(alice), "I live in Porto.")
    fact = remember(now, "Lives in Porto.").fact
    thread = import_lines(alice, "old", [("I do not live in Porto.", "I see.")])
    said = Message.objects.get(thread=thread, role="user")
    rests(thread)
    retire = {"fact_id": fact.pk, "reason": "They said so.", "evidence": written(said)["evidence"]}
    emulator.answer(tool_use("retire_fact", retire), match={"contains": "do not live"})
    emulator.answer(text("done"), times=-1)
    assert drain() == 1
    assert texts(alice) == ["Lives in Porto."]
    assert "was said or seen later than this" in json.dumps(emulator.bodies()[-1]["messages"])


def test_a_category_is_read_by_a_model_that_may_and_its_facts_stay_in_it(emulator, alice, settings, tmp_path):
    catalog = tmp_path / "catalog.toml"
    models = "".join(f'[models.{name}]\nreads = ["health"]\n' for name in ("emulator-light", "emulator-light-all"))
    catalog.write_text(f'categories = ["health", "law"]\n{models}')
    settings.MAXCLAW_CATALOG = str(catalog)
    health, law = thread_of(alice, category="health"), thread_of(alice, category="law")
    for thread in (health, law):
        exchange(thread, f"I prefer {thread.category} at night.")
    rests(health, law)
    assert drain() == 1
    assert texts(alice, category="health") == ["The user said: I prefer health at night."]
    assert (Fact.objects.count(), outcomes(thread=law)) == (1, [])


def test_the_tick_asks_the_queue_once_something_is_due(emulator, alice):
    from django_q.signing import SignedPackage

    def asked():
        tasks = [SignedPackage.loads(queued.payload)["func"] for queued in OrmQ.objects.all()]
        return tasks.count("memory.tasks.read_for_memory")

    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    run_tick(clock.now())
    assert asked() == 0
    rests(thread)
    run_tick(clock.now())
    assert asked() == 1
    assert drain() == 1
    run_tick(clock.now().replace(minute=0) + timedelta(hours=1))
    assert asked() == 1


def test_a_page_is_never_read_inside_a_transaction(emulator, alice, monkeypatch):
    thread = thread_of(alice)
    exchange(thread, "I live in Lisbon.")
    rests(thread)
    idle = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in tr%%'"
    emulator.answer(text("done"), hold="page")
    worker = threading.Thread(target=lambda: (drain(), connection.close()))
    worker.start()
    emulator.wait_for_held(1)
    with connection.cursor() as cursor:
        cursor.execute(idle)
        assert cursor.fetchone() == (0,)
    emulator.release()
    worker.join()
