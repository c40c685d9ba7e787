"""`make setup`, as far as it goes without a package registry."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.maxclaw.running import ROOT

LOCKS = ("requirements.txt", "requirements-dev.txt", "requirements-uv.txt")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with locks that name nothing, set up once: the folder and what that said."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "maxclaw").mkdir()
    shutil.copy(ROOT / "maxclaw" / "environment_setup.py", folder / "maxclaw")
    write_locks(folder)
    return folder, set_up(folder)


@pytest.fixture
def project(made):
    """That folder, its locks naming nothing and installed."""
    folder, _ = made
    write_locks(folder)
    set_up(folder)
    return folder


def write_locks(folder: Path) -> None:
    for lock in LOCKS:
        (folder / lock).write_text("")


def set_up(project: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import runpy, sys\n{before}\nrunpy.run_path('maxclaw/environment_setup.py', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=project, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


def test_it_makes_the_environment_once_and_is_quick_and_silent_afterwards(made, project):
    _, first = made
    assert first.returncode == 0, first.stderr
    assert "making .venv" in first.stderr
    made_at = (project / ".venv" / "pyvenv.cfg").stat().st_mtime_ns
    second = set_up(project)
    assert (second.returncode, second.stderr) == (0, "")
    assert (project / ".venv" / "pyvenv.cfg").stat().st_mtime_ns == made_at


def test_a_changed_lock_is_installed_again(project):
    (project / "requirements.txt").write_text("# nothing more\n")
    assert "installing requirements.txt" in set_up(project).stderr
    assert set_up(project).stderr == ""


def test_what_checking_needs_contains_what_running_needs(project):
    """`make run` after `make test` must not take the test packages away again."""
    assert "installing requirements-dev.txt" in set_up(project, "--dev").stderr
    assert set_up(project).stderr == ""


def test_a_lock_without_hashes_is_refused(project):
    (project / "requirements.txt").write_text("django==5.2.19\n")
    failed = set_up(project)
    assert failed.returncode == 1
    assert "installing requirements.txt failed" in failed.stderr
    assert set_up(project).returncode == 1  # and not taken for done


def test_a_python_that_is_too_old_is_refused_in_a_sentence(project):
    old = set_up(project, before="sys.version_info = (3, 10, 13)")
    assert old.returncode == 1
    assert "MaxClaw needs 3.11 or newer" in old.stderr


def test_without_ensurepip_it_names_the_package_to_install(project, tmp_path):
    shutil.copytree(project, tmp_path / "new", ignore=shutil.ignore_patterns(".venv"))
    failed = set_up(tmp_path / "new", before="sys.modules['ensurepip'] = None")
    assert failed.returncode == 1
    assert failed.stderr.endswith("python3-venv, then try again.\n")


def test_make_alone_shows_its_targets_and_a_missing_python_is_a_sentence():
    shown = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True)
    for target in ("setup", "run", "test", "lint", "types", "layers", "lock", "messages"):
        assert f"make {target} " in shown.stdout
    failed = subprocess.run(
        ["make", "setup", "PYTHON="], cwd=ROOT, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}
    )
    assert failed.returncode != 0
    assert "no Python 3.11 or newer was found" in failed.stderr


def test_a_catalogue_is_compiled_when_it_changed(tmp_path):
    """With the project's own environment, which has Babel."""
    from maxclaw import environment_setup

    source = tmp_path / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
    source.parent.mkdir(parents=True)
    source.write_text('msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\nmsgid "Stop"\nmsgstr "停止"\n')
    environment_setup.ROOT, root = tmp_path, environment_setup.ROOT
    environment_setup.PYTHON, python = Path(sys.executable), environment_setup.PYTHON
    try:
        environment_setup.compile_catalogues()
        compiled = source.with_suffix(".mo")
        assert "停止".encode() in compiled.read_bytes()
        before = compiled.stat().st_mtime_ns
        environment_setup.compile_catalogues()
        assert compiled.stat().st_mtime_ns == before
        source.write_bytes(b'msgid "Stop"\nmsgstr "\xff"\n')
        os.utime(source, ns=(before + 10**9, before + 10**9))
        with pytest.raises(SystemExit, match="is not valid"):
            environment_setup.compile_catalogues()
    finally:
        environment_setup.ROOT, environment_setup.PYTHON = root, python
