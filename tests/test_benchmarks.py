"""The benchmarks run, in their shortest form, and say what they promise."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

from agent.import_lines import parse_line
from benchmarks import corpora, steward_evidence
from benchmarks.harness import ROOT, TEMPLATE, fresh_database, percentile
from benchmarks.steward import repeats
from tests.emulator_server import running_emulator

SECONDS = 240  # a hung benchmark ends; a slow one on a busy machine does not

FIGURES = {
    "turns": {
        "queries_per_turn",
        "overhead_ratio_10_rows",
        "overhead_ratio_10000_rows",
        "paced_ratio",
        "framework_ms_p50",
        "framework_ms_p95_50_threads",
    },
    "locomo": {
        "messages_per_second",
        "messages_per_second_dealt",
        "generations_of_the_long_one",
        "questions_answered",
        "first_words_ms_p50",
        "recall",
        "result_chars_max",
    },
    "memory": {
        "search_p95_ms",
        "tool_p95_ms",
        "fewest_facts_found",
        "facts_in_the_table",
        "facts",
        "steward_tokens",
        "steward_dollars",
    },
    "shadow": {
        "hot_read_share",
        "hot_over_cold_same_model",
        "cost_per_1000_messages",
        "trigger_to_proposal_s",
        "cancel_ms_p95",
        "first_token_ratio_under_load",
    },
    "thresholds": {"model", "recall", "briefing"},
    "search": {
        "p95_ms",
        "tool_p95_ms",
        "short_rows_p95_ms",
        "grep_ratio",
        "grep_ratio_search",
        "grep_ratio_tool",
        "index_share",
        "insert_ratio",
    },
}


@pytest.fixture(scope="module", autouse=True)
def migrated_once():
    """Every benchmark here starts with a copy of one empty, migrated database."""
    with fresh_database(os.environ["DATABASE_URL"]) as url, pytest.MonkeyPatch.context() as patch:
        command = [sys.executable, "manage.py", "migrate", "--verbosity", "0", "--skip-checks"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=True, timeout=SECONDS)
        patch.setenv(TEMPLATE, url.partition("?")[0].rpartition("/")[2])
        yield


def run(name, *options):
    """Run a benchmark as a person does; returns its output."""
    command = [sys.executable, f"benchmarks/{name}.py", *options]
    ended = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=SECONDS)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_benchmark_ends_with_its_figures_as_one_json_object(name):
    last = run(name, "--smoke").splitlines()[-1]
    figures = json.loads(last)
    assert figures["benchmark"] == name
    assert figures.keys() >= FIGURES[name] | {"machine", "commit"}
    if name == "turns":
        assert 5 < figures["queries_per_turn"] <= 25
        assert figures["overhead_ratio_10_rows"] > 1
    elif name == "search":
        assert figures["p95_ms"]["selective"].keys() == figures["grep_ratio"].keys() == {"0.12M", "0.24M"}
        assert 0.05 < figures["index_share"] < 5
    elif name == "memory":
        assert figures["search_p95_ms"].keys() == figures["fewest_facts_found"].keys() == {"200", "400"}
        assert min(figures["fewest_facts_found"].values()) > 0, "else an empty answer was timed"
        assert figures["digested_once"] is True
        assert figures["steward_calls"] > 0 == figures["steward_calls_again"] == figures["steward_calls_failed"]
        assert (figures["evidence_valid_share"], figures["duplicate_share"]) == (1, 0)
        assert figures["facts"] > 20
        assert figures["steward_dollars"] > 0
    elif name == "shadow":
        assert figures["hot_runs"] == figures["hot_runs_that_count"] == 1
        assert 0.99 <= figures["hot_read_share"] <= 1
        assert 0 < figures["hot_over_cold_same_model"] < 0.2
        assert figures["cost_per_1000_messages"].keys() == {"steward", "cold", "hot"}
    elif name == "thresholds":
        shares = [figures[which]["related_share"] for which in ("recall", "briefing")]
        assert 0.4 < shares[0] < shares[1]
        assert figures["recall"]["unrelated_share"] < 0.01 < figures["briefing"]["unrelated_share"] < 0.15
    else:
        assert figures["questions_answered"] == 2


STATED = ("Likes tea in the morning.", "about-user", "preference", "remark", "max-stated", 1, 1)
NOBODYS = (None,) * 5 + (None, None)


@pytest.mark.parametrize(
    ("what", "row", "holds"),
    [
        ("a word of theirs", (*STATED, 1, 7, "user", "Tea, please.", False, True, None, None, *NOBODYS), True),
        ("another's row", (*STATED, 2, 7, "user", "Tea, please.", False, True, None, None, *NOBODYS), False),
        ("an assistant's", (*STATED, 1, 7, "assistant", "Tea, please.", False, True, None, None, *NOBODYS), False),
        ("rewound", (*STATED, 1, 7, "user", "Tea, please.", False, True, "superseded", None, *NOBODYS), False),
        ("a hidden row", (*STATED, 1, 7, "user", "Tea, please.", False, False, None, None, *NOBODYS), False),
        ("a question", (*STATED, 1, 7, "user", "Do I like tea?", False, True, None, None, *NOBODYS), False),
        ("of other things", (*STATED, 1, 7, "user", "Rain again.", False, True, None, None, *NOBODYS), False),
        ("no row", (*STATED, None, *(None,) * 7, *NOBODYS), False),
    ],
)
def test_evidence_is_judged_by_its_rows_apart_from_the_judge_that_let_it_in(what, row, holds):
    assert len(row) == 22, what
    assert steward_evidence.holds(row) is holds, what


def test_hot_against_cold_is_timed_on_any_server_that_speaks_the_messages_api():
    with running_emulator(bodies=False) as emulator:
        last = run("shadow", "--smoke", "--engine", emulator.base_url, "--engine-model", "emulator-main")
    figures = json.loads(last.splitlines()[-1])
    assert figures["benchmark"] == "shadow-engine"
    assert figures["cache_read_tokens"] > 20_000
    assert figures["hot_over_cold_first_token"] > 0


def test_a_model_server_without_the_name_of_its_model_is_refused_at_once():
    command = [sys.executable, "benchmarks/memory.py", "--model-url", "http://127.0.0.1:1"]
    environment = {name: value for name, value in os.environ.items() if name != "MAXCLAW_MODEL"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "Name it with --model or MAXCLAW_MODEL" in ended.stderr


def locomo_folder(tmp_path):
    turns = [
        {"speaker": "Ann", "dia_id": "D1:1", "text": "Look at this "},
        {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice", "blip_caption": "a photo of a dog"},
    ]
    later = [{"speaker": "Ann", "dia_id": "D10:1", "text": "Hello again"}]
    conversation = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_10": later,
        "session_10_date_time": "9:05 am on 10 June, 2023",
        "session_1": turns,
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_2_date_time": "1:56 pm on 9 May, 2023",
    }
    file = tmp_path / corpora.LOCOMO_FILE
    file.parent.mkdir()
    file.write_text(json.dumps([{"sample_id": "conv-1", "conversation": conversation}]))
    return tmp_path


def test_published_conversations_become_lines_that_can_be_imported(tmp_path):
    out = tmp_path / "lines.jsonl"
    assert "3 lines written" in run("locomo", "--data", str(locomo_folder(tmp_path)), "--convert", str(out))
    lines = [parse_line(raw) for raw in out.read_bytes().splitlines()]
    assert [(line.id, line.text, line.created) for line in lines] == [
        ("D1:1", "Ann: Look at this", datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ("D1:2", "Ben: Nice [shares a photo of a dog]", datetime(2023, 5, 8, 13, 56, 30, tzinfo=UTC)),
        ("D10:1", "Ann: Hello again", datetime(2023, 6, 10, 9, 5, tzinfo=UTC)),
    ]
    assert {(line.conversation, line.title) for line in lines} == {("conv-1", "Ann and Ben")}


def test_the_last_words_of_a_conversation_are_held_back_as_exchanges():
    def line(conversation, role, text, name=None):
        return {"conversation": conversation, "role": role, "text": text} | ({"name": name} if name else {})

    lines = [line("two", "user", str(number), ("Ann", "Ben")[number % 2]) for number in range(6)]
    traced = [("user", "hello"), ("assistant", "hi"), ("user", "find"), ("tool", "found"), ("assistant", "here it is")]
    lines += [line("one", role, text) for role, text in [*traced, ("tool", "more")]]
    first, last = corpora.held_back(lines, exchanges=2)
    assert last == {
        "two": [("Ann: 2", "Ben: 3"), ("Ann: 4", "Ben: 5")],
        "one": [("hello", "hi"), ("find", "here it is")],
    }
    assert [one["text"] for one in first] == ["0", "1"]
    first, last = corpora.held_back(lines, exchanges=1)
    assert last["one"] == [("find", "here it is")]
    assert [one["text"] for one in first if one["conversation"] == "one"] == ["hello", "hi"]


def test_a_fact_that_repeats_an_earlier_one_is_counted_once():
    first, other = np.array([1, 0], np.float32), np.array([0.6, 0.8], np.float32)
    assert repeats([first]) == repeats([first, other]) == 0
    assert repeats([first, other, first, first]) == 2


def test_a_percentile_is_one_of_the_values():
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.95) == 4.0
    assert percentile([7.0], 0.5) == 7.0
