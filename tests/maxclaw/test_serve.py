"""`manage.py serve`, as a person runs it: real processes, real ports, the embedded database."""

import http.client
import os
import re
import signal
import socket
import subprocess
import threading
from functools import partial
from pathlib import Path

import pytest

from tests.maxclaw.running import free_port, manage, processes_of, wait_until

pytestmark = pytest.mark.processes
PASSWORD = "a password for the tests"
START_SECONDS = 200.0


class Serve:
    """A running `serve` and everything it has said so far."""

    def __init__(self, data_dir: Path, *arguments: str, **variables: str) -> None:
        self.data_dir = data_dir
        self.port = free_port()
        self.process: subprocess.Popen[str] = manage(
            data_dir, "serve", "--port", str(self.port), *arguments, **variables
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    @property
    def said(self) -> str:
        return "".join(self.lines)

    def wait_until_said(self, words: str) -> None:
        def said_or_ended() -> bool:
            assert words in self.said or self.process.poll() is None, self.said
            return words in self.said

        wait_until(said_or_ended, START_SECONDS, f"{words!r}")

    def is_live(self) -> bool:
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            client.request("GET", "/health/live")
            return client.getresponse().status == 200
        except OSError:
            return False
        finally:
            client.close()

    def child(self, words: str) -> int:
        """The process id of the one process directly below `serve` whose command line has these words."""
        [pid] = [
            pid
            for pid, line in processes_of(self.data_dir).items()
            if words in line and parent_of(pid) == self.process.pid
        ]
        return pid

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(30)
        self.reader.join(10)
        return code


def parent_of(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


@pytest.fixture
def serve(data_dir):
    """Starts servers on the module's data folder, and kills what a failed test leaves."""
    started: list[Serve] = []

    def start(*arguments: str, **variables: str) -> Serve:
        running = Serve(data_dir, *arguments, **{"MAXCLAW_ADMIN_PASSWORD": PASSWORD, **variables})
        started.append(running)
        return running

    yield start
    for running in started:
        running.process.kill()
        running.process.wait()
    wait_until(lambda: not processes_of(data_dir), what="the end of everything")


@pytest.fixture(scope="class")
def running(data_dir):
    """One server for several tests; it ends in order, with code 0 and nothing left."""
    running = Serve(data_dir, MAXCLAW_ADMIN_PASSWORD=PASSWORD)
    try:
        running.wait_until_said("Ctrl-C")
        yield running
        assert running.end(signal.SIGINT) == 0
        assert not processes_of(data_dir)
    finally:
        running.process.kill()


class TestWhileItRuns:
    def test_it_says_address_login_and_which_model_answers(self, running):
        assert "Traceback" not in running.said.partition("Ctrl-C")[0]
        assert re.search(rf"address +http://127\.0\.0\.1:{running.port}$", running.said, re.MULTILINE)
        assert re.search(r"login +admin", running.said)
        assert re.search(r"model +the built-in emulator", running.said)

    def test_a_second_one_says_what_is_running_and_ends_with_code_1(self, running, data_dir):
        second = manage(data_dir, "serve", "--port", str(free_port()))
        said, _ = second.communicate(timeout=60)
        assert second.returncode == 1
        holder = rf"http://127\.0\.0\.1:{running.port} \(process {running.process.pid}, since .* UTC\)"
        assert re.fullmatch(rf"maxclaw: MaxClaw is already running at {holder}\.\n", said)
        assert running.is_live()

    def test_commands_use_its_database_and_leave_it_running(self, running, data_dir):
        server = running.child("bin/postgres")
        said, _ = manage(data_dir, "showmigrations", "maxclaw").communicate(timeout=60)
        assert "[X] 0001_heartbeat" in said
        assert running.child("bin/postgres") == server

    def test_its_emulator_keeps_no_words_and_has_no_control_interface(self, running, data_dir):
        command = processes_of(data_dir)[running.child("llm.emulator")]
        assert "--no-bodies" in command
        port = int(re.search(r"--port (\d+)", command)[1])
        for path, found in (("/_control/requests?bodies=1", False), ("/_control/answers", False), ("/v1/models", True)):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            client.request("GET", path)
            assert (client.getresponse().status != 404) is found, path
            client.close()

    def test_what_dies_is_started_again(self, running):
        for words, name in (("uvicorn", "web"), ("qcluster", "worker"), ("llm.emulator", "emulator")):
            killed = running.child(words)
            os.kill(killed, signal.SIGKILL)
            running.wait_until_said(f"{name} was ended by SIGKILL")
            wait_until(partial(started_anew, running, words, killed), 90, f"a new {name}")
        wait_until(running.is_live, 90, "an answer")
        os.kill(running.child("bin/postgres"), signal.SIGKILL)
        running.wait_until_said("the database was ended by SIGKILL")
        wait_until(lambda: is_ready(running), 60, "a ready server")


def test_a_port_in_use_is_said_in_one_line_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = manage(tmp_path, "serve", "--port", str(port))
        said, _ = command.communicate(timeout=30)
    assert command.returncode == 1
    assert re.fullmatch(rf"maxclaw: Port {port} on 127\.0\.0\.1 cannot be used .*--port or MAXCLAW_PORT\.\n", said)
    assert not (tmp_path / "postgres").exists()


def test_killed_with_sigkill_it_leaves_no_process_and_no_lock_and_starts_again(serve, data_dir):
    running = serve()
    running.wait_until_said("Ctrl-C")
    wait_until(lambda: sum("qcluster" in line for line in processes_of(data_dir).values()) >= 5)
    running.end(signal.SIGKILL)
    wait_until(lambda: not processes_of(data_dir), 60, "the end of every process")
    again = serve()
    again.wait_until_said("Ctrl-C")
    assert again.is_live()
    assert "waiting" not in again.said
    assert again.end() == 0


def started_anew(running: Serve, words: str, killed: int) -> bool:
    try:
        return running.child(words) != killed
    except ValueError:
        return False


def is_ready(running: Serve) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", running.port, timeout=40)
    try:
        client.request("GET", "/health/ready")
        return client.getresponse().status == 200
    except OSError:
        return False
    finally:
        client.close()
