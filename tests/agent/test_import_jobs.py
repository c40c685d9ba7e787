"""Imports in the background: claimed once, gone on with after a crash, cancelled, ended with their file removed."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import translation
from django_q.models import OrmQ
from django_q.signing import SignedPackage

from accounts import erasing
from agent import import_jobs, import_run
from agent.import_run import Report
from agent.models import ImportJob, ToolCall
from agent.refusals import Refused
from agent.tasks import run_import
from agent.ticks import sweep_imports
from maxclaw import clock
from maxclaw.sentences import read
from tests.agent import exports
from tests.agent.world import database_url
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def data_folder(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"


@pytest.fixture
def uploaded(alice, tmp_path):
    """Starts an import of so many conversations, of alice's unless another owner is named."""

    def start(count=3, owner=alice, raw=None):
        made = exports.write_zip(
            tmp_path / "made.zip", [exports.chatgpt_conversation(number) for number in range(count)]
        )
        name, file = import_jobs.new_file()
        with file:
            file.write(made.read_bytes() if raw is None else raw)
        return import_jobs.start(owner, name, "export.zip")

    return start


def stored():
    return sorted(path.name for path in import_jobs.folder().iterdir())


def problems(job):
    """What its report says was left out: where, why, and the conversation's id in the file."""
    return [(str(where), str(why), source) for where, why, source in Report.from_json(job.report).problems]


def test_the_queue_gets_the_id_alone(uploaded):
    job = uploaded()
    [queued] = OrmQ.objects.all()
    task = SignedPackage.loads(queued.payload)
    assert (task["func"], task["args"]) == ("agent.tasks.run_import", (job.pk,))


def test_an_import_runs_and_says_what_it_came_to(uploaded, alice):
    job = uploaded(4)
    run_import(job.pk)
    job.refresh_from_db()
    assert (job.state, job.position, job.attempts, job.done, job.lease_token) == ("done", 4, 1, job.total, None)
    assert (job.report["new"], job.report["branches"], job.report["left_out"]) == (4, 2, 0)
    assert job.finished >= job.started >= job.created
    assert stored() == []


def test_a_second_delivery_finds_nothing_to_claim(uploaded, monkeypatch):
    job = uploaded()
    monkeypatch.setattr(import_run, "_read", lambda conversation: run_import(job.pk) or pytest.fail("ran twice"))
    with pytest.raises(pytest.fail.Exception):
        run_import(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("running", 1)


def test_a_person_has_one_open_import_and_others_have_their_own(uploaded, bob):
    first = uploaded()
    with pytest.raises(Refused, match="not finished"):
        uploaded()
    assert stored() == [first.stored_as]
    uploaded(owner=bob)
    run_import(first.pk)
    uploaded()


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"PK\x03\x04 nothing", "The archive is damaged. Download it again."),
        (b"[]", "No conversation was found in this file."),
        (b"hello", "No conversation was found in this file."),
    ],
)
def test_what_is_no_export_fails_with_a_sentence(uploaded, raw, problem):
    job = uploaded(raw=raw)
    run_import(job.pk)
    job.refresh_from_db()
    assert (job.state, str(read(job.problem))) == ("failed", problem)
    assert stored() == []


def test_json_lines_are_imported_too(uploaded, alice):
    line = b'{"conversation": "c", "role": "user", "text": "Hello", "created": "2024-01-01"}'
    job = uploaded(raw=line + b"\n{broken\n")
    run_import(job.pk)
    job.refresh_from_db()
    assert (job.state, job.report["added"], job.report["left_out"]) == ("done", 1, 1)
    assert problems(job)[0][0] == "line 2"


def test_what_was_left_out_is_said_in_the_language_of_the_day_it_is_read(uploaded, alice):
    nested = exports.chatgpt_conversation(0)
    nested["mapping"]["odd"] = {"parent": nested["current_node"], "children": [], "message": {"author": {}}}
    job = uploaded(raw=json.dumps([7, nested]).encode())
    run_import(job.pk)
    job.refresh_from_db()
    assert problems(job) == [
        ("export.zip, entry 1", "It is not a JSON object.", ""),
        ("export.zip, entry 2 (“Talk 0”)", "Message odd: It does not say who wrote it.", nested["conversation_id"]),
    ]
    with translation.override("zh-hans"):
        assert [found[:2] for found in problems(job)] == [
            ("export.zip，第 1 条", "它不是 JSON 对象。"),
            ("export.zip，第 2 条（“Talk 0”）", "消息 odd：它没有说明是谁写的。"),
        ]


def test_what_is_erased_while_it_is_imported_again_is_not_named_in_the_report(uploaded, monkeypatch):
    monkeypatch.setattr(import_jobs, "SAVE_SECONDS", -1.0)  # after each conversation
    first = {**exports.chatgpt_conversation(0), "title": "A canary's talk"}
    run_import(uploaded(raw=json.dumps([first]).encode()).pk)
    odd = {"parent": first["current_node"], "children": [], "message": {"author": {}}}
    first["mapping"]["odd"] = odd
    nested = exports.chatgpt_conversation(1)
    nested["mapping"]["odd"] = {**odd, "parent": nested["current_node"]}
    job = uploaded(raw=json.dumps([first, nested, exports.chatgpt_conversation(2)]).encode())
    read_one, named = import_run._read, []

    def read_and_erase(conversation):
        if conversation["title"] == "Talk 2":
            job.refresh_from_db()
            named.extend(problems(job))
            for thread in Thread.objects.filter(title="A canary's talk"):
                erasing.erase_thread(thread)
        return read_one(conversation)

    monkeypatch.setattr(import_run, "_read", read_and_erase)
    run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "done"
    assert [where for where, _why, _source in named] == [
        "export.zip, entry 1 (“A canary's talk”)",
        "export.zip, entry 2 (“Talk 1”)",
    ]
    assert [where for where, _why, _source in problems(job)] == ["export.zip, entry 2 (“Talk 1”)"]


def test_why_an_import_failed_is_said_in_the_language_of_the_day_it_is_read(uploaded):
    job = uploaded(raw=b"PK\x03\x04 nothing")
    run_import(job.pk)
    job.refresh_from_db()
    with translation.override("zh-hans"):
        assert str(read(job.problem)) == "压缩包已损坏。请重新下载。"


def test_an_error_of_ours_is_a_plain_sentence_and_keeps_what_is_there(uploaded, monkeypatch):
    job = uploaded(3)
    reads = import_run._read

    def fails(conversation):
        if conversation["title"] == "Talk 2":
            raise KeyError("secret words")
        return reads(conversation)

    monkeypatch.setattr(import_run, "_read", fails)
    run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert "error on the server" in str(read(job.problem)) and "secret" not in json.dumps(job.problem)
    assert Thread.objects.filter(title__in=["Talk 0", "Talk 1"]).count() == 2


def test_a_long_import_goes_on_in_a_task_of_its_own(uploaded, monkeypatch):
    job = uploaded(5)
    monkeypatch.setattr(import_jobs, "SLICE_SECONDS", -1.0)
    for position in range(1, 5):
        run_import(job.pk)
        job.refresh_from_db()
        assert (job.state, job.position, job.attempts) == ("waiting", position, 0)
    run_import(job.pk)
    job.refresh_from_db()
    run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "done"
    assert (job.report["new"], job.report["unchanged"], job.report["added"]) == (5, 0, job.report["seen"])


def test_a_running_import_is_cancelled_between_conversations(uploaded, alice, monkeypatch):
    monkeypatch.setattr(import_jobs, "SAVE_SECONDS", -1.0)
    job = uploaded(5)
    reads = import_run._read

    def cancel_at_the_third(conversation):
        if conversation["title"] == "Talk 2":
            import_jobs.cancel(alice, job.pk)
        return reads(conversation)

    monkeypatch.setattr(import_run, "_read", cancel_at_the_third)
    run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "cancelled" and job.finished
    titles = set(Thread.objects.filter(kind="web", copied_from=None).values_list("title", flat=True))
    assert titles == {"Talk 0", "Talk 1"}
    assert stored() == []


def test_a_lapsed_lease_lets_another_worker_go_on_and_after_three_crashes_it_fails(uploaded):
    job = uploaded()
    for attempt in range(1, 4):
        assert import_jobs._claim(job.pk).attempts == attempt
        sweep_imports(clock.now())
        job.refresh_from_db()
        assert job.state == "running"  # the lease still holds
        with clock.moved(import_jobs.LEASE.total_seconds() + 1):
            sweep_imports(clock.now())
        job.refresh_from_db()
        assert job.state == ("waiting" if attempt < 3 else "failed")
    assert "error on the server" in str(read(job.problem))
    assert stored() == []


def test_a_worker_that_lost_its_lease_writes_nothing_more(uploaded, monkeypatch):
    monkeypatch.setattr(import_jobs, "SAVE_SECONDS", -1.0)
    job = uploaded(5)
    reads = import_run._read

    def lose_at_the_second(conversation):
        if conversation["title"] == "Talk 1":
            ImportJob.objects.filter(pk=job.pk).update(state="waiting", lease_token=None, lease_until=None)
        return reads(conversation)

    with monkeypatch.context() as patched:
        patched.setattr(import_run, "_read", lose_at_the_second)
        run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "waiting"
    assert not Thread.objects.filter(title__in=["Talk 1", "Talk 2"]).exists()
    assert stored() == [job.stored_as]
    run_import(job.pk)
    assert Thread.objects.filter(kind="web", copied_from=None).count() == 5


def test_an_import_whose_file_is_on_no_machine_waits_and_then_fails(uploaded):
    job = uploaded()
    import_jobs.remove_file(job.stored_as)
    run_import(job.pk)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("waiting", 0)
    sweep_imports(clock.now())
    job.refresh_from_db()
    assert job.state == "waiting"
    with clock.moved(import_jobs.FILE_WAIT.total_seconds() + 1):
        sweep_imports(clock.now())
    job.refresh_from_db()
    assert (job.state, str(read(job.problem))) == ("failed", "The uploaded file is gone. Upload it again.")


def test_files_of_no_import_go_once_nobody_can_be_writing_them(uploaded):
    job = uploaded()
    name, file = import_jobs.new_file()
    file.close()
    sweep_imports(clock.now())
    assert stored() == sorted([job.stored_as, name])
    with clock.moved(import_jobs.LEFT_BEHIND.total_seconds() + 1):
        sweep_imports(clock.now())
    assert stored() == [job.stored_as]
    ImportJob.objects.filter(pk=job.pk).update(state="failed", finished=clock.now())
    sweep_imports(clock.now())
    assert stored() == []


def test_erasing_a_person_takes_their_imports_along(uploaded, alice, bob, django_capture_on_commit_callbacks):
    uploaded()
    others = uploaded(owner=bob)
    with django_capture_on_commit_callbacks(execute=True):
        erasing.erase_user(alice)
    assert list(ImportJob.objects.all()) == [others]
    assert stored() == [others.stored_as]


def test_a_report_forgets_an_erased_conversation_and_no_other_of_its_title(uploaded, alice):
    both = [exports.chatgpt_conversation(0), exports.chatgpt_conversation(1)]
    both[1]["title"] = both[0]["title"]
    run_import(uploaded(raw=json.dumps(both).encode()).pk)
    first = Thread.objects.filter(title="Talk 0").order_by("id").first()
    Thread.objects.filter(kind="web").update(state="waiting")
    for newer in both:
        last = newer["current_node"]
        newer["mapping"]["new"] = {"parent": last, "children": [], "message": exports.message("user", "More")}
        newer["current_node"] = "new"
    again = uploaded(raw=json.dumps([*both, {"title": "Talk 0 is odd"}]).encode())
    run_import(again.pk)
    again.refresh_from_db()
    assert ["Talk 0" in where for where, _why, _source in problems(again)] == [True, True, True]
    erasing.erase_thread(first)
    again.refresh_from_db()
    left = [(where.split(",")[1].split("(")[0], source) for where, _why, source in problems(again)]
    assert left == [(" entry 2 ", both[1]["conversation_id"]), (" entry 3 ", "")]


@pytest.mark.django_db(transaction=True)
@pytest.mark.processes
def test_a_killed_worker_leaves_whole_conversations_and_the_import_goes_on(uploaded, alice):
    count = 100
    job = uploaded(count)
    code = f"import django; django.setup(); from agent.tasks import run_import; run_import({job.pk})"
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "DJANGO_SETTINGS_MODULE": "maxclaw.settings",
        "MAXCLAW_DATA_DIR": str(django_settings.DATA_DIR),
    }
    process = subprocess.Popen([sys.executable, "-c", code], cwd=django_settings.BASE_DIR, env=environment)
    try:
        deadline = time.monotonic() + 60
        while Thread.objects.filter(kind="web", copied_from=None).count() < 10:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    mains = Thread.objects.filter(kind="web", copied_from=None)
    assert 10 <= mains.count() < count
    for thread in mains:
        number = int(thread.title.split()[1])
        words = {"Question", "Answer", "Thanks", "Welcome"}
        assert {text.split()[0] for text in texts_of(thread) if text[:1].isalpha()} == words
        assert Thread.objects.filter(copied_from__thread=thread).count() == (number % 3 == 0)
        assert ToolCall.objects.filter(thread=thread, result__isnull=False).count() == (number % 4 == 0)
    job.refresh_from_db()
    assert (job.state, job.attempts) == ("running", 1)
    with clock.moved(import_jobs.LEASE.total_seconds() + 1):
        sweep_imports(clock.now() + timedelta(seconds=1))
        run_import(job.pk)
    job.refresh_from_db()
    assert job.state == "done"
    assert mains.all().count() == count
    questions = Message.objects.filter(copied_from=None, text__startswith="Question").values_list("text", flat=True)
    assert sorted(questions) == sorted(f"Question {number}" for number in range(count))
    assert stored() == []


def texts_of(thread):
    return list(Message.objects.filter(thread=thread).values_list("text", flat=True))
