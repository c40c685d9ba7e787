"""What a database and a data folder need before the server starts: done once, checked at every start."""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import OperationalError

from llm.catalog import MAIN, load_catalog
from maxclaw.heartbeat import forget_old
from maxclaw.schedule import ADVISORY_LOCK_SPACE, PREPARATION_LOCK, ensure_schedule

MINIMUM_POSTGRESQL = 15
FIRST_USER = "admin"
LOCK_KEY = (ADVISORY_LOCK_SPACE, PREPARATION_LOCK)


class PreparationError(Exception):
    """The server cannot start. The text says in one sentence what to change."""


@dataclass(frozen=True)
class Login:
    """How to sign in: a user name, and the password when it was made just now."""

    username: str
    password: str | None


def prepare_database() -> Login:
    """Migrations, the first user and the schedule; several servers may do this at once.

    Raises PreparationError when the database cannot be used.
    """
    check_database()
    with one_at_a_time():
        call_command("migrate", interactive=False, verbosity=0)
        login = ensure_first_user()
        ensure_schedule()
        forget_old()
    connection.close()
    return login


def check_database() -> None:
    """Raise PreparationError when the database does not answer or is too old."""
    try:
        connection.ensure_connection()
    except OperationalError as error:
        reason = str(error).strip().splitlines()[0]
        raise PreparationError(f"The database does not answer ({reason}). Check DATABASE_URL.") from None
    version = postgresql_version() // 10_000
    if version < MINIMUM_POSTGRESQL:
        raise PreparationError(f"The database is PostgreSQL {version}; MaxClaw needs {MINIMUM_POSTGRESQL} or newer.")


def missing_migrations() -> int:
    """How many migrations the database lacks. Raises django.db.Error when it does not answer."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def postgresql_version() -> int:
    """The server's version as PostgreSQL counts: 180004 is 18.4."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        return int(cursor.fetchone()[0])


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the lock that servers preparing the same database take; waits for it."""
    # A connection of its own: the lock has to outlive each migration's transaction.
    parameters = {**connection.get_connection_params(), "autocommit": True}
    parameters.pop("pool", None)
    with psycopg.connect(**parameters) as lock:
        lock.execute("SELECT pg_advisory_lock(%s, %s)", LOCK_KEY)
        yield


def ensure_first_user() -> Login:
    """Make the user `admin` in a database without users. Its password is MAXCLAW_ADMIN_PASSWORD or a random
    one."""
    from accounts.models import User

    first = User.objects.filter(is_superuser=True, is_active=True).order_by("id").first()
    if first is None and not User.objects.exists():
        password = settings.ADMIN_PASSWORD or secrets.token_urlsafe(12)
        User.objects.create_superuser(FIRST_USER, password=password)
        return Login(FIRST_USER, password)
    return Login(first.get_username() if first else "", None)


def collect_static_files() -> None:
    """Gather and compress static files, unless they are as they were at the last time."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            modified = storage.get_modified_time(path).timestamp()
            digest.update(f"{storage.path(path)} {storage.size(path)} {modified}\n".encode())
    stamp = settings.STATIC_ROOT / ".collected"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)
    stamp.write_text(digest.hexdigest())


def needs_emulator() -> bool:
    """Whether a palette in use holds one of the emulator's models, and no running emulator was named."""
    groups = load_catalog().palettes.values()
    emulated = any(model.provider == "emulator" for group in groups for model in group)
    return emulated and not settings.EMULATOR_URL


def model_line() -> str:
    """Which model answers, in words for the person who started the server."""
    catalog = load_catalog()
    if catalog.emulated:
        return "the built-in emulator, which follows rules and is no language model (set ANTHROPIC_API_KEY for one)"
    names = ", ".join(model.name for model in catalog.palettes[MAIN])
    return f"{names} at {settings.ANTHROPIC_BASE_URL}" if settings.ANTHROPIC_BASE_URL else names
