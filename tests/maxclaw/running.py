"""Starting MaxClaw's own commands in a data folder of their own, and seeing what is left of them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def environment(data_dir: Path, **variables: str) -> dict[str, str]:
    """The environment of a command that uses the embedded database in `data_dir`."""
    kept = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "MAXCLAW_ROLE"}}
    return {**kept, "MAXCLAW_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1", **variables}


def manage(data_dir: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start a `manage.py` command with pipes to and from it."""
    return python(data_dir, "manage.py", *arguments, **variables)


def python(data_dir: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    """Start Python in the project's folder with pipes to and from it. It hears SIGINT even where the tests run in a
    shell's background, which ignores it and has its children do so."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(data_dir, **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def processes_of(data_dir: Path) -> dict[int, str]:
    """Process id to command line of everything that was started for a data folder and lives."""
    mark = f"MAXCLAW_DATA_DIR={data_dir}"
    return {pid: command for pid, command, variables in _processes() if mark in variables}


def commands() -> list[str]:
    """The command lines of every process on this machine."""
    return [command for _, command, _ in _processes()]


def _processes() -> Iterator[tuple[int, str, list[str]]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text(errors="replace").replace("\0", " ").strip()
            variables = (folder / "environ").read_text(errors="replace").split("\0")
        except OSError:
            continue  # ended meanwhile, or another user's
        yield int(folder.name), command, variables


def wait_until(condition: Callable[[], object], seconds: float = 60.0, what: str = "the condition") -> None:
    """Wait until a condition holds; fails the test when it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true within {seconds} s"
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
