"""`make setup`: the virtual environment from the hashed lock, and the compiled translation catalogues.

Run by the machine's own Python before anything is installed, so it uses the standard library alone and
imports nothing of MaxClaw: `python3 maxclaw/environment_setup.py [--dev]`. Quick when nothing changed.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

MINIMUM_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
RUNTIME_LOCK = "requirements.txt"
DEVELOPMENT_LOCK = "requirements-dev.txt"
UV_LOCK = "requirements-uv.txt"


def say(sentence: str) -> None:
    sys.stderr.write(f"setup: {sentence}\n")


def run(*arguments: object, quiet: bool = False) -> bool:
    """Run a program in the project's folder; whether it succeeded."""
    output = subprocess.DEVNULL if quiet else None
    try:
        return (
            subprocess.run(
                [str(argument) for argument in arguments], cwd=ROOT, stdout=output, stderr=output, check=False
            ).returncode
            == 0
        )
    except OSError:
        return False


def make_virtual_environment() -> None:
    """Make `.venv`, anew when its Python is gone, too old, or the folder was moved."""
    usable = f"import sys; sys.exit(sys.version_info < {MINIMUM_PYTHON} or sys.prefix != {str(VENV)!r})"
    if run(PYTHON, "-c", usable, quiet=True):
        return
    say(f"making .venv with Python {sys.version.split()[0]}")
    try:
        import ensurepip  # noqa: F401 - Debian ships it in a package of its own
    except ImportError:
        raise SystemExit(
            "setup: this Python cannot make a virtual environment. On Debian and Ubuntu install the package "
            "python3-venv, then try again."
        ) from None
    if not run(sys.executable, "-m", "venv", "--clear", VENV):
        raise SystemExit(f"setup: making the virtual environment {VENV} failed.")


def is_current(lock: str) -> bool:
    """Whether `.venv` holds what a lock file says: a copy of the lock marks what was installed."""
    stamp = VENV / lock
    return stamp.exists() and stamp.read_bytes() == (ROOT / lock).read_bytes()


def mark_current(lock: str) -> None:
    shutil.copyfile(ROOT / lock, VENV / lock)


def install(lock: str) -> None:
    """Bring `.venv` to exactly what a lock file says, every file checked against its hash.

    With uv (seconds), else with pip from the same lock (a minute).
    """
    if is_current(lock):
        return
    for stamp in (RUNTIME_LOCK, DEVELOPMENT_LOCK):
        (VENV / stamp).unlink(missing_ok=True)
    say(f"installing {lock}")
    pip = (PYTHON, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--require-hashes", "-r")
    if not is_current(UV_LOCK) and run(*pip, UV_LOCK, quiet=True):
        mark_current(UV_LOCK)
    os.environ["UV_PYTHON_DOWNLOADS"] = "never"
    # Compiled here, once: a process that may not write beside its code would compile all of it at each start.
    sync = (UV, "pip", "sync", "--quiet", "--compile-bytecode", "--python", PYTHON)
    synchronised = run(*sync, "--require-hashes", lock)
    if not synchronised:
        say("uv is not available here or failed; installing with pip, which takes longer")
        if not run(*pip, lock):
            raise SystemExit(f"setup: installing {lock} failed; the lines above say why.")
    mark_current(lock)
    if lock == DEVELOPMENT_LOCK:  # it contains the other
        mark_current(RUNTIME_LOCK)


def compile_catalogues() -> None:
    """Compile each translation catalogue that is newer than its compiled form, with Babel from `.venv`."""
    for source in sorted((ROOT / "locale").glob("*/LC_MESSAGES/*.po")):
        compiled = source.with_suffix(".mo")
        if compiled.exists() and compiled.stat().st_mtime >= source.stat().st_mtime:
            continue
        babel = (PYTHON, "-m", "babel.messages.frontend", "--quiet")
        if not run(*babel, "compile", "-i", source, "-o", compiled):
            raise SystemExit(f"setup: the catalogue {source} is not valid; the lines above say why.")


def main() -> None:
    if sys.version_info < MINIMUM_PYTHON:
        raise SystemExit(f"setup: Python {sys.version.split()[0]} is too old; MaxClaw needs 3.11 or newer.")
    with (ROOT / RUNTIME_LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two at once would install over each other
        make_virtual_environment()
        install(DEVELOPMENT_LOCK if "--dev" in sys.argv[1:] else RUNTIME_LOCK)
        compile_catalogues()


if __name__ == "__main__":
    main()
