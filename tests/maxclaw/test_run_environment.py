"""The test run's own environment: a database that dies with it, and browser tests only where there is a browser."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import remove_left_over
from tests.maxclaw.running import ROOT, commands, wait_until
from tests.run_environment import restore_at_end

SLEEPER = """
import os, time
def test_sleeper():
    print("folder", os.environ["DATABASE_URL"].partition("host=")[2].removesuffix("/run"), flush=True)
    time.sleep(60)
"""
BROWSER = """
import pytest
@pytest.mark.browser
def test_page(chromium): pass
def test_other(): pass
"""


def pytest_environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "CI"}}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


def lives(folder: str) -> bool:
    """Whether a server runs on a cluster in this folder."""
    return any(f"{folder}/postgres" in command for command in commands())


@pytest.mark.processes
def test_a_killed_run_leaves_no_server_and_the_next_removes_its_folder(tmp_path):
    (tmp_path / "test_sleeper.py").write_text(SLEEPER)
    pytest_here = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", str(tmp_path / "test_sleeper.py")]
    run = subprocess.Popen(
        [*pytest_here, "-s", "-q", "-p", "no:randomly"],
        cwd=ROOT,
        env=pytest_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    folder = next(line for line in run.stdout if line.startswith("folder")).split()[1]
    assert lives(folder)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    wait_until(lambda: not lives(folder), 10, "the end of the server")
    assert Path(folder).is_dir()
    remove_left_over()  # as every run does first
    assert not Path(folder).is_dir()


@pytest.mark.parametrize(("ci", "left_out"), [("", True), ("true", False)])
def test_without_a_browser_its_tests_are_left_out_and_said_so_but_fail_in_ci(tmp_path, ci, left_out):
    (tmp_path / "test_page.py").write_text(BROWSER)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser: x\n")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:django", str(tmp_path)],
        cwd=tmp_path,
        env=pytest_environment(PATH="/nowhere", CI=ci),
        capture_output=True,
        text=True,
    )
    if left_out:
        assert run.returncode == 0
        assert "1 passed, 1 deselected" in run.stdout
        assert "1 browser tests were left out: there is no Chromium on this machine." in run.stdout
    else:
        assert run.returncode == 1
        assert "install Debian's package `chromium`" in run.stdout


def test_a_run_gives_back_the_environment_that_it_found(monkeypatch):
    class Run:
        def add_cleanup(self, restore):
            self.restore = restore

    monkeypatch.setenv("ANTHROPIC_API_KEY", "theirs")
    found, run = dict(os.environ), Run()
    restore_at_end(run)
    del os.environ["ANTHROPIC_API_KEY"]
    os.environ |= {"MAXCLAW_DATA_DIR": "/run", "MAXCLAW_NEW": "1"}
    run.restore()
    assert dict(os.environ) == found


def test_a_persons_own_variables_do_not_reach_the_tests():
    assert os.environ["MAXCLAW_DATA_DIR"].startswith("/")
    reaching = [name for name in os.environ if name.startswith(("ANTHROPIC_", "MAXCLAW_"))]
    assert set(reaching) == {"MAXCLAW_DATA_DIR"}
