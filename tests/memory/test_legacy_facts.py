"""Facts kept elsewhere: imported without evidence, then sorted."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command

from llm.emulator.client import tool_use
from llm.models import ModelCall
from memory import changing, forgetting, legacy_import, triage
from memory.models import Fact, FactEvidence, FactLog
from tests.threads.records import exchange, thread_of
from threads.models import Message

pytestmark = pytest.mark.django_db(transaction=True)

run_triage = async_to_sync(triage.triage)


@pytest.fixture
def facts_file(tmp_path):
    def write(*lines):
        path = tmp_path / "facts.jsonl"
        path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
        return str(path)

    return write


def test_lines_become_legacy_facts_once_and_broken_ones_are_reported(alice, facts_file, capsys, monkeypatch):
    monkeypatch.setattr(legacy_import, "BATCH_LINES", 3)
    alice.time_zone = "America/New_York"  # where the first day of the year 1 has not begun
    alice.save()
    path = facts_file(
        {"text": "I prefer tea in the morning.", "aspect": "preference", "tone": "decision", "applies_to": "mornings"},
        "",
        {"text": "I prefer  TEA in the morning", "aspect": "preference", "applies_to": "Mornings"},
        {"text": "I prefer tea in the morning.", "aspect": "preference", "applies_to": "evenings"},
        {"text": "We refused plan A because of the noise.", "kind": "event", "created": "2023-05-08T13:56:00+02:00"},
        "{broken",
        {"text": " "},
        {"text": "x", "kind": "secret"},
        {"text": "x", "tone": 3},
        {"text": "The key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789ABCD"},
        {"text": "x", "created": "tomorrow"},
        {"text": "x", "created": "2999-01-01"},
        {"text": "Moved yesterday.", "created": "0001-01-01T00:00:00"},
        "[1]",
    )
    call_command("import_facts", path, user="alice")
    said, problems = capsys.readouterr()
    assert "13 lines, 3 facts added, 1 known before, 9 broken." in said
    assert [f"line {number}:" in problems for number in (6, 7, 8, 9, 10, 11, 12, 13, 14)] == [True] * 9
    facts = list(Fact.objects.order_by("pk").values_list("text", "applies_to", "kind", "aspect", "tone", "legacy"))
    assert facts == [
        ("I prefer tea in the morning.", "mornings", "about-user", "preference", "decision", True),
        ("I prefer tea in the morning.", "evenings", "about-user", "preference", "remark", True),
        ("We refused plan A because of the noise.", "", "event", "", "remark", True),
    ]
    assert Fact.objects.get(kind="event").created.isoformat() == "2023-05-08T11:56:00+00:00"
    Fact.objects.filter(kind="event").update(status="retired")
    call_command("import_facts", path, user="alice")
    assert "0 facts added, 4 known before" in capsys.readouterr().out
    assert Fact.objects.count() == 3
    for user, lines in (("nobody", path), ("alice", facts_file(""))):
        with pytest.raises(CommandError):
            call_command("import_facts", lines, user=user)


def test_relative_times_become_dates_of_their_own_time_and_stay_where_nobody_knows_it(alice, facts_file, capsys):
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    written = "2023-05-07T16:30:00Z"  # half past midnight on Monday the 8th, there
    path = facts_file(
        {"text": "I moved to Porto yesterday.", "created": written},
        {"text": "我昨天搬到了波尔图。", "applies_to": "今年", "created": written},
        {"text": "I sold the car last week."},
        {"text": "I like rain."},
    )
    for added in (4, 0):
        call_command("import_facts", path, user="alice")
        said = capsys.readouterr().out
        assert f"4 lines, {added} facts added" in said
        assert "1 of them hold a relative time and no created" in said
    assert list(Fact.objects.order_by("pk").values_list("text", "applies_to")) == [
        ("I moved to Porto 2023-05-07.", ""),
        ("我2023-05-07搬到了波尔图。", "2023年"),
        ("I sold the car last week.", ""),
        ("I like rain.", ""),
    ]


def test_words_with_a_relative_time_are_found_again_where_they_were_said_at_that_time(emulator, alice):
    texts = ("I moved to Porto yesterday.", "I sold the car last week.")
    imported(alice, *texts, created="2023-05-08T12:00:00Z")
    moved, sold = (exchange(thread_of(alice), f"{text} What a month.")[0] for text in texts)
    Message.objects.filter(pk=moved.pk).update(created=datetime(2023, 5, 8, 9, tzinfo=UTC))
    Message.objects.filter(pk=sold.pk).update(created=datetime(2023, 6, 8, 9, tzinfo=UTC))
    assert run_triage(alice).restated == 1
    new = Fact.objects.get(legacy=False)
    assert (new.text, new.evidence.get().message) == ("I moved to Porto 2023-05-07.", moved)


def imported(owner, *texts, **more):
    lines = [json.dumps({"text": text, **more}).encode() for text in texts]
    legacy_import.import_facts(owner, lines, on_problem=lambda number, why: pytest.fail(f"{number}: {why}"))


def statuses():
    return dict(Fact.objects.order_by("pk").values_list("text", "status"))


def test_what_was_forgotten_is_not_imported_again(alice, bob):
    imported(alice, "I prefer tea in the morning.", "I like rain.")
    [tea, rain] = Fact.objects.order_by("pk")
    corrected = changing.correct(
        rain, replace(changing.draft_of(rain), text="I like snow."), reason="", writer="person"
    )
    for fact in (tea, corrected):
        forgetting.forget(fact, writer="person", actor=alice)
    assert not Fact.objects.exists()
    imported(alice, "I PREFER tea in the morning", "I like rain.", "I like fog.")
    imported(bob, "I like rain.")
    assert list(Fact.objects.order_by("pk").values_list("owner__username", "text")) == [
        ("alice", "I like fog."),
        ("bob", "I like rain."),
    ]


def test_the_log_of_forgetting_keeps_no_fingerprint_that_anybody_could_try_words_on(alice, bob, settings):
    fingerprints = set()
    for owner in (alice, bob):
        imported(owner, "I like rain.")
        fact = Fact.objects.get()
        fingerprints.add(fact.fingerprint)
        forgetting.forget(fact, writer="person", actor=owner)
    kept = [mark for entry in FactLog.objects.filter(action="forget") for mark in entry.forgotten]
    assert len(fingerprints) == 1 and len(set(kept)) == 2 and not fingerprints & set(kept)
    # Under another key, and where the bare fingerprint was kept, it stays forgotten.
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]
    imported(alice, "I like rain.")
    FactLog.objects.filter(owner=bob).update(forgotten=list(fingerprints))
    imported(bob, "I like rain.")
    assert not Fact.objects.exists()


def test_triage_retires_rewrites_and_leaves_and_the_second_time_changes_nothing(emulator, alice, bob, capsys):
    imported(
        alice,
        "The server is deployed from commit 1a2b3c4.",
        "I prefer tea in the morning.",
        "The recipe for releases is documented in docs/release.md",
        "She likes long walks by the sea.",
        "我喜欢安静的早晨。",
        "Do I want to move to Porto?",
    )
    imported(bob, "I prefer tea in the morning.")
    said, _answer = exchange(thread_of(alice), "As I said, I PREFER tea in the morning. 我喜欢安静的早晨。")
    exchange(thread_of(alice), "It is not true that I prefer tea in the morning.")
    exchange(thread_of(alice), "Do I want to move to Porto? The server is deployed from commit 1a2b3c4.")
    exchange(thread_of(alice, scope="isolated"), "She likes long walks by the sea.")
    exchange(thread_of(bob), "She likes long walks by the sea.")
    call_command("triage_facts", user="alice")
    report, progress = capsys.readouterr()
    assert "6 facts: 1 out of scope and retired, 2 found again in the person's own words, 1 pointers left" in report
    assert "2 others left, 0 not judged." in report
    assert "6 of 6 facts looked through" in progress
    old = {fact.text: fact for fact in Fact.objects.filter(owner=alice, legacy=True)}
    assert {text: fact.status for text, fact in old.items()} == {
        "The server is deployed from commit 1a2b3c4.": "retired",
        "I prefer tea in the morning.": "superseded",
        "The recipe for releases is documented in docs/release.md": "active",
        "She likes long walks by the sea.": "active",
        "我喜欢安静的早晨。": "superseded",
        "Do I want to move to Porto?": "active",
    }
    for fact in Fact.objects.filter(owner=alice, legacy=False):
        [proof] = fact.evidence.all()
        assert (proof.kind, proof.message_id, fact.status) == ("max-stated", said.pk, "active")
    assert Fact.objects.filter(owner=bob, legacy=True, status="active").count() == 1
    # Again: no call, no change.
    before = [list(model.objects.order_by("pk").values()) for model in (Fact, FactEvidence, FactLog, ModelCall)]
    call_command("triage_facts", user="alice")
    assert "3 facts: 0 out of scope and retired, 0 found again" in capsys.readouterr().out
    assert [list(model.objects.order_by("pk").values()) for model in (Fact, FactEvidence, FactLog, ModelCall)] == before


def test_an_event_that_the_person_told_is_proved_by_their_words_and_one_that_nobody_told_is_not(emulator, alice):
    told, untold = "We refused plan A because of the noise.", "We refused plan B because of the price."
    imported(alice, told, untold, kind="event", created="2023-05-08T13:56:00Z")
    thread = thread_of(alice)
    said, _answer = exchange(thread, f"Plan A is gone. {told}", untold)
    report = run_triage(alice)
    assert (report.seen, report.restated, report.left, report.unjudged) == (2, 1, 1, 0)
    new = Fact.objects.get(legacy=False)
    assert (new.text, new.kind, new.aspect) == (told, "event", "")
    assert [(proof.kind, proof.message_id) for proof in new.evidence.all()] == [("max-stated", said.pk)]
    assert Fact.objects.get(status="superseded").superseded_by == new
    assert Fact.objects.get(status="active", legacy=True).text == untold, "the assistant's words prove nothing of it"


def test_triage_goes_on_where_it_stopped_and_asks_again_of_what_was_not_judged(emulator, alice, monkeypatch, settings):
    monkeypatch.setattr(triage, "PAGE_FACTS", 2)
    settings.MODEL_RETRIES = 0
    imported(alice, "It was deployed on port 80.", "I like rain.", "I like snow.", "I like hail.")
    ids = sorted(Fact.objects.values_list("pk", flat=True))
    emulator.answer(tool_use("judge_facts", {"verdicts": [{"fact_id": f"f:{ids[0]}", "verdict": "out-of-scope"}]}))
    emulator.fault("status", status=400, times=-1, match={"contains": "I like snow"})
    with pytest.raises(CommandError, match="Run it again"):
        call_command("triage_facts", user="alice")
    assert list(statuses().values()) == ["retired", "active", "active", "active"]
    emulator.reset()
    report = run_triage(alice)
    assert (report.seen, report.left, report.unjudged, report.retired) == (3, 3, 0, 0)
    calls = ModelCall.objects.count()
    assert run_triage(alice).left == 3
    assert ModelCall.objects.count() == calls
    settings.BUDGET_USER_TOKENS = 1
    imported(alice, "I like fog.")
    with pytest.raises(CommandError, match="budget"):
        call_command("triage_facts", user="alice")
