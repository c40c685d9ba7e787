"""The temporary PostgreSQL cluster of one test run: fast, unsafe, and gone with it."""

import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from maxclaw.embedded import Cluster, try_lock
from maxclaw.embedded_paths import DATABASE_NAME, DATABASE_USER

PREFIX = "maxclaw-tests-"
# Nothing in it outlives the run, so nothing has to reach the disk.
UNSAFE_AND_FAST = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_wal_size=4GB"]


class RunFolder:
    """The temporary folder of one test run. A lock marks it as in use; that of a killed run is removed by the next."""

    def __init__(self) -> None:
        remove_left_over()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        self.lock = os.open(self.path / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try_lock(self.lock)
        self.path.chmod(0o755)  # run as root, the server is another user
        self.data_dir = self.path / "data"
        (self.data_dir / "static").mkdir(parents=True)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


class TemporaryCluster:
    """A server with `options` for its command line, in a run's folder, or else in one that goes with it."""

    def __init__(self, options: Sequence[str] = UNSAFE_AND_FAST, folder: RunFolder | None = None) -> None:
        self.removes_folder = folder is None
        self.folder = folder or RunFolder()
        path = self.folder.path
        self.cluster = Cluster(path, path / "run", options=options, death_signal=signal.SIGQUIT)
        self.url = f"postgresql://{DATABASE_USER}@/{DATABASE_NAME}?host={self.cluster.socket_dir}"

    def start(self) -> None:
        self.cluster.start()

    def stop(self) -> None:
        if self.cluster.process is not None:
            self.cluster.process.send_signal(signal.SIGQUIT)  # no checkpoint: the folder goes anyway
        self.cluster.stop()
        if self.removes_folder:
            self.folder.remove()


def remove_left_over() -> None:
    """Remove the folders of runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / "run.lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if try_lock(lock):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
