"""The embedded database: one cluster, shared by commands, gone with the last of them."""

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, LiteralString

import pytest

from maxclaw.embedded import AlreadyRunning, Cluster, EmbeddedDatabaseError, try_lock
from tests.maxclaw.running import ROOT, environment, processes_of, python, wait_until

# What `manage.py` does around a command, around one that prints when the server started, waits for a line,
# and asks the database again.
USE_AND_WAIT = """
import os, psycopg
from django.conf import settings
from maxclaw.embedded import database_for_command
with database_for_command(["migrate"]):
    database = settings.DATABASES["default"]
    connection = psycopg.connect(host=database["HOST"], user=database["USER"], dbname=database["NAME"])
    print(connection.execute("SELECT pg_postmaster_start_time()").fetchone()[0], flush=True)
    input()
    print(connection.execute("SELECT 'still here'").fetchone()[0], flush=True)
    connection.close()
"""


def use_and_wait(data_dir: Path) -> subprocess.Popen[str]:
    return python(data_dir, "-c", USE_AND_WAIT, DJANGO_SETTINGS_MODULE="maxclaw.settings")


def first_line(command: subprocess.Popen[str]) -> str:
    assert command.stdout is not None
    return command.stdout.readline()


def servers(data_dir: Path) -> list[int]:
    """The process ids of the postmasters of a data folder."""
    return [pid for pid, command in processes_of(data_dir).items() if "/bin/postgres" in command]


def is_free(data_dir: Path) -> bool:
    """Whether nothing of the cluster runs."""
    lock = os.open(data_dir / "postgres.lock", os.O_RDWR | os.O_CREAT)
    try:
        return try_lock(lock)
    finally:
        os.close(lock)


def test_two_commands_at_once_share_one_server_and_the_first_to_end_leaves_it_to_the_other(data_dir):
    first, second = use_and_wait(data_dir), use_and_wait(data_dir)
    started = [first_line(first), first_line(second)]
    assert started[0] == started[1] and started[0].startswith("20")
    assert len(servers(data_dir)) == 1
    for command in (first, second):
        rest, _ = command.communicate("\n", timeout=20)
        assert "still here" in rest
        assert command.returncode == 0
    wait_until(lambda: not processes_of(data_dir), what="the end of server and keeper")
    assert is_free(data_dir)


def test_a_single_command_returns_when_nothing_runs_any_more(data_dir):
    command = use_and_wait(data_dir)
    command.communicate("\n", timeout=30)
    assert not processes_of(data_dir)


@pytest.mark.parametrize("victim", ["command", "keeper", "server"])
def test_nothing_outlives_a_killed(victim, data_dir):
    command = use_and_wait(data_dir)
    first_line(command)
    running = processes_of(data_dir)
    keeper = next(pid for pid, line in running.items() if "embedded_keeper" in line)
    pid = {"command": command.pid, "keeper": keeper, "server": servers(data_dir)[0]}[victim]
    os.kill(pid, signal.SIGKILL)
    if victim == "command":
        command.wait()
    wait_until(lambda: is_free(data_dir), what="the end of the server")
    command.kill()
    command.communicate()
    wait_until(lambda: not processes_of(data_dir), what="the end of every process")
    again = use_and_wait(data_dir)
    assert "still here" in again.communicate("\n", timeout=30)[0]


def test_a_left_over_process_id_that_belongs_to_a_stranger_does_not_keep_it_from_starting(data_dir):
    cluster = Cluster.of(data_dir)
    cluster.start()
    cluster.stop()
    (cluster.folder / "postmaster.pid").write_text(f"{os.getpid()}\n{cluster.folder}\n")
    cluster.start()
    assert cluster.answers()
    cluster.stop()


def test_a_cluster_that_was_half_made_is_made_again(data_dir):
    half_made = data_dir / "postgres.new-killed"
    half_made.mkdir()
    cluster = Cluster.of(data_dir)
    cluster.start()
    cluster.stop()
    assert not half_made.exists()


def test_a_second_owner_is_refused_in_a_sentence(data_dir):
    cluster, other = Cluster.of(data_dir), Cluster.of(data_dir)
    cluster.start()
    try:
        with pytest.raises(AlreadyRunning, match="in use by another command"):
            other.start(wait_seconds=0.1)
    finally:
        cluster.stop()


def test_it_listens_on_a_private_unix_socket_alone_and_knows_vectors(data_dir):
    cluster = Cluster.of(data_dir)
    cluster.start()
    try:
        assert cluster.socket_dir.stat().st_mode & 0o777 == 0o700
        with closing(cluster.connect("maxclaw")) as connection:

            def value(query: LiteralString) -> Any:
                row = connection.execute(query).fetchone()
                assert row is not None
                return row[0]

            assert value("SHOW listen_addresses") == ""
            assert value("SHOW max_connections") == "200"
            assert value("SHOW server_version").startswith("18")
            assert value("SELECT upper('ßñж')") == "ßÑЖ"  # the same case rules on every machine
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            assert value("SELECT '[3,4]'::vector <-> '[0,0]'::vector") == 5
    finally:
        cluster.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_as_root_a_folder_that_the_servers_user_cannot_enter_is_refused_in_a_sentence():
    with tempfile.TemporaryDirectory() as private:  # mode 0700
        with pytest.raises(EmbeddedDatabaseError, match=f"may not enter {private}.*MAXCLAW_DATA_DIR"):
            Cluster.of(Path(private) / "var").start()
        command = subprocess.run(
            [sys.executable, "manage.py", "showmigrations"],
            cwd=ROOT,
            env=environment(Path(private) / "var"),
            capture_output=True,
            text=True,
        )
    assert command.returncode == 1
    assert command.stderr.startswith("maxclaw: ") and command.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user")
def test_as_root_programs_that_the_servers_user_cannot_reach_are_copied(data_dir, monkeypatch):
    from maxclaw import embedded

    monkeypatch.setattr(embedded, "_may_execute", lambda path, account: path.name != "postgres")
    cluster = Cluster.of(data_dir)
    cluster.start()
    try:
        assert cluster.process is not None and isinstance(cluster.process.args, list)
        assert str(cluster.process.args[0]).startswith(str(data_dir))
        assert cluster.answers()
    finally:
        cluster.stop()


@pytest.mark.parametrize("arguments", [[], ["serve"], ["migrate", "--help"], ["makemigrations"], ["doctor"]])
def test_commands_that_need_no_database_start_none(arguments, tmp_path):
    code = f"from maxclaw.embedded import database_for_command\nwith database_for_command({arguments}): pass"
    command = python(tmp_path, "-c", code, DJANGO_SETTINGS_MODULE="maxclaw.settings")
    said, _ = command.communicate(timeout=30)
    assert (command.returncode, said) == (0, "")
    assert not (tmp_path / "postgres").exists()
