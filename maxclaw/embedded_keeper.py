"""Keeps the embedded database running for commands while no `serve` owns it, and ends it after the last one.

Each command holds a shared lock on `postgres.users`. The keeper (`python -m maxclaw.embedded_keeper
DATA_DIR`) owns the server and waits until it can take that lock alone. It belongs to no command, so the first
to end does not take the database from under the others; killed, it takes the server with it.
"""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

from maxclaw import clock
from maxclaw.embedded import (
    POLL_SECONDS,
    START_TIMEOUT_SECONDS,
    STOP_TIMEOUT_SECONDS,
    AlreadyRunning,
    Cluster,
    EmbeddedDatabaseError,
    try_lock,
)
from maxclaw.embedded_paths import DATABASE_NAME

OWNED_BY_ANOTHER = 75


def users_lock(data_dir: Path) -> int:
    """A new descriptor of the file on which each user of the database holds a shared lock."""
    data_dir.mkdir(parents=True, exist_ok=True)
    return os.open(data_dir / "postgres.users", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def database_in_use(data_dir: Path) -> Iterator[None]:
    """Use the running embedded database, or start it, for the length of a block.

    Raises EmbeddedDatabaseError, before the block, when it cannot be started.
    """
    lock = users_lock(data_dir)
    keeper = None
    try:
        # Waits while a keeper that is about to end holds it: then its server must not be used any more.
        fcntl.flock(lock, fcntl.LOCK_SH)
        keeper = _ensure_running(data_dir)
        yield
    finally:
        # Alone with a keeper of our own, wait for it, so that nothing runs once the command has returned.
        last = keeper is not None and try_lock(lock)
        os.close(lock)
        if keeper is not None and last:
            try:
                keeper.wait(STOP_TIMEOUT_SECONDS * 2)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"maxclaw: the embedded database (process {keeper.pid}) is still shutting down.\n")


def _ensure_running(data_dir: Path) -> subprocess.Popen[str] | None:
    """Wait until the database answers, with a keeper of our own when nobody runs it. Returns that keeper."""
    cluster = Cluster.of(data_dir)
    keeper = None
    deadline = clock.monotonic() + START_TIMEOUT_SECONDS
    while not cluster.answers(DATABASE_NAME):
        if keeper is None:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "maxclaw.embedded_keeper", str(data_dir)],
                cwd=Path(__file__).resolve().parent.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        elif keeper.poll() is not None:
            assert keeper.stderr is not None
            if keeper.returncode != OWNED_BY_ANOTHER:
                raise EmbeddedDatabaseError(keeper.stderr.read().strip())
            keeper = None  # another is starting or still ending it: look again
        if clock.monotonic() >= deadline:
            raise EmbeddedDatabaseError(f"The embedded database in {data_dir} did not answer; see postgres.log there.")
        sleep(POLL_SECONDS)
    return keeper


def keep(data_dir: Path) -> int:
    """Own the server until no command uses it. Returns the exit code."""
    cluster = Cluster.of(data_dir)
    try:
        cluster.start(wait_seconds=0.2)
    except AlreadyRunning:
        return OWNED_BY_ANOTHER
    except EmbeddedDatabaseError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    lock = users_lock(data_dir)
    while not try_lock(lock):
        assert cluster.process is not None
        if cluster.process.poll() is not None:
            return 1
        sleep(POLL_SECONDS)
    # The lock is held until this process is gone: a command that comes now waits and starts its own.
    cluster.stop()
    return 0


if __name__ == "__main__":
    raise SystemExit(keep(Path(sys.argv[1])))
