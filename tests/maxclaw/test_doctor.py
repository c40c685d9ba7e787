"""`manage.py doctor`: one line for each thing, and what to do about what is wrong."""

import json
import subprocess
import sys
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from maxclaw import clock, doctor, heartbeat
from maxclaw.doctor import FAIL, OK, WARN
from maxclaw.schedule import ensure_schedule
from tests.maxclaw.running import ROOT, environment, free_port, wait_until

pytestmark = pytest.mark.django_db


def findings() -> dict[str, doctor.Finding]:
    return {finding.subject: finding for finding in doctor.examine()}


def test_a_healthy_server_has_no_failure():
    heartbeat.beat("worker:a:1")
    ensure_schedule()
    found = findings()
    assert {subject: one.level for subject, one in found.items()} == {
        "configuration": OK,
        "data folder": OK,
        "database": OK,
        "pgvector": OK,
        "connections": OK,
        "clock": OK,
        "migrations": OK,
        "workers": OK,
        "minute tick": OK,
        "queue": OK,
        "model": WARN,
        "embeddings": OK,
    }
    assert "emulator" in found["model"].text


def test_what_does_not_run_is_a_warning_that_says_how_to_start_it():
    found = findings()
    for subject in ("workers", "minute tick"):
        assert found[subject].level == WARN
        assert "make run" in found[subject].text


def test_a_tick_that_is_late_is_a_warning():
    schedule = ensure_schedule()
    schedule.next_run -= timedelta(minutes=10)
    schedule.save()
    assert findings()["minute tick"].level == WARN


def test_a_missing_migration_is_a_failure_and_its_tables_are_not_asked(take_back_a_migration):
    take_back_a_migration()
    found = findings()
    assert found["migrations"].level == FAIL
    assert "manage.py migrate" in found["migrations"].text
    assert "workers" not in found


def test_a_clock_that_is_off_is_a_warning():
    with clock.moved(3_600):
        found = findings()["clock"]
    assert found.level == WARN
    assert "-3600 s" in found.text


def test_too_few_connections_are_a_warning(monkeypatch):
    monkeypatch.setattr(doctor, "CONNECTIONS_ENOUGH", 10_000)
    assert findings()["connections"].level == WARN


def test_a_secret_key_that_others_may_read_is_a_failure(settings, tmp_path):
    settings.DATA_DIR = tmp_path
    (tmp_path / "secret_key").write_text("not so secret")
    (tmp_path / "secret_key").chmod(0o644)
    found = findings()["data folder"]
    assert found.level == FAIL
    assert "chmod 600" in found.text


def test_a_full_disk_is_a_failure(monkeypatch):
    monkeypatch.setattr(doctor, "SPACE_NEEDED_BYTES", 10**18)
    monkeypatch.setattr(doctor, "SPACE_ENOUGH_BYTES", 10**18)
    assert findings()["data folder"].level == FAIL


def test_a_model_server_that_does_not_answer_is_a_failure(settings):
    settings.ANTHROPIC_BASE_URL = f"http://127.0.0.1:{free_port()}"
    settings.MAXCLAW_MODEL = "local"
    found = findings()["model"]
    assert found.level == FAIL
    assert "ANTHROPIC_BASE_URL" in found.text


def test_a_model_server_that_answers_is_named(settings):
    port = free_port()
    emulator = subprocess.Popen(
        [sys.executable, "-m", "llm.emulator", "--port", str(port), "--die-with-parent"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    try:
        settings.ANTHROPIC_BASE_URL = f"http://127.0.0.1:{port}"
        settings.ANTHROPIC_API_KEY = "any"
        settings.MAXCLAW_MODEL = "local"
        wait_until(lambda: doctor.model().level == OK, what="an answer")
        assert settings.ANTHROPIC_BASE_URL in doctor.model().text
    finally:
        emulator.kill()
        emulator.wait()


def test_the_command_prints_lines_or_json_and_ends_with_1_on_a_failure(take_back_a_migration):
    lines = StringIO()
    call_command("doctor", stdout=lines)
    assert lines.getvalue().startswith("OK    configuration  ")
    take_back_a_migration()
    output = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("doctor", json=True, stdout=output)
    assert ended.value.code == 1
    assert {"subject": "configuration", "level": "OK"}.items() <= json.loads(output.getvalue())[0].items()


def test_a_database_that_does_not_answer_is_a_line_of_the_report(tmp_path):
    command = subprocess.run(
        [sys.executable, "manage.py", "doctor"],
        cwd=ROOT,
        env=environment(tmp_path, DATABASE_URL=f"postgresql://nobody@127.0.0.1:{free_port()}/none"),
        capture_output=True,
        text=True,
    )
    assert command.returncode == 1
    assert "FAIL  database       The database does not answer" in command.stdout
    assert "model" in command.stdout
    assert command.stderr == ""
