"""`manage.py doctor`: looks at everything MaxClaw depends on, and says what to do about what is wrong."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connection
from django_q.models import OrmQ, Schedule

from llm import embedding
from llm.catalog import emulator_in_use
from llm.sdk import anthropic
from maxclaw import clock
from maxclaw.embedded import EmbeddedDatabaseError
from maxclaw.embedded_keeper import database_in_use
from maxclaw.heartbeat import STALE_SECONDS, newest_worker_age
from maxclaw.preparation import (
    PreparationError,
    check_database,
    missing_migrations,
    model_line,
    postgresql_version,
)
from maxclaw.schedule import TICK_NAME

OK, WARN, FAIL = "OK", "WARN", "FAIL"
CONNECTIONS_ENOUGH = 60
SPACE_ENOUGH_BYTES = 1_000_000_000
SPACE_NEEDED_BYTES = 100_000_000
CLOCKS_APART_SECONDS = 5.0
TICK_LATE_SECONDS = 180.0
MODEL_TIMEOUT_SECONDS = 15.0


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked at, OK, WARN or FAIL, and a sentence that says what to do."""

    subject: str
    level: str
    text: str


def examine() -> Iterator[Finding]:
    """Look at one thing after the other; the database's own only where it answers."""
    yield Finding("configuration", OK, "every variable is well formed")
    yield from _each(data_folder)
    with ExitStack() as stack:
        try:
            if settings.DATABASE_EMBEDDED:
                stack.enter_context(database_in_use(settings.DATA_DIR))
            check_database()
        except (EmbeddedDatabaseError, PreparationError, ImproperlyConfigured) as error:
            yield Finding("database", FAIL, str(error))
        else:
            kind = "embedded " if settings.DATABASE_EMBEDDED else ""
            version = postgresql_version()
            yield Finding("database", OK, f"{kind}PostgreSQL {version // 10_000}.{version % 10_000} answers")
            yield from _each(vector_extension, connection_limit, database_clock)
            for finding in _each(migrations):
                yield finding
                if finding.level == OK:  # else their tables may be missing
                    yield from _each(workers, tick, queue)
            if not connection.in_atomic_block:
                connection.close()  # before the server that may end with this command
    yield from _each(model, embeddings)


def _each(*checks: Callable[[], Finding]) -> Iterator[Finding]:
    for check in checks:
        try:
            yield check()
        except (Error, OSError) as error:
            reason = str(error).strip().splitlines()[0]
            yield Finding(check.__name__.replace("_", " "), FAIL, f"could not be looked at: {reason}")


def data_folder() -> Finding:
    folder = settings.DATA_DIR
    if not os.access(folder, os.W_OK | os.X_OK):
        return Finding("data folder", FAIL, f"{folder} may not be written to; correct its owner or its mode")
    key = folder / "secret_key"
    if key.exists() and key.stat().st_mode & 0o077:
        return Finding("data folder", FAIL, f"others may read the secret key; run: chmod 600 '{key}'")
    free = shutil.disk_usage(folder).free
    level = OK if free >= SPACE_ENOUGH_BYTES else WARN if free >= SPACE_NEEDED_BYTES else FAIL
    advice = "" if level == OK else "; free some, or set MAXCLAW_DATA_DIR to a folder on a larger disk"
    return Finding("data folder", level, f"{folder} has {free / 1e9:.1f} GB free{advice}")


def vector_extension() -> Finding:
    installed = _value("SELECT extversion FROM pg_extension WHERE extname = 'vector'")
    if installed:
        return Finding("pgvector", OK, f"version {installed}")
    if _value("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"):
        return Finding("pgvector", WARN, "available, not installed; run: python manage.py migrate")
    return Finding("pgvector", FAIL, "missing; install pgvector on the database's machine")


def migrations() -> Finding:
    missing = missing_migrations()
    if missing:
        return Finding("migrations", FAIL, f"{missing} are missing; run: python manage.py migrate")
    return Finding("migrations", OK, "all are applied")


def connection_limit() -> Finding:
    limit = int(_value("SHOW max_connections"))
    if limit < CONNECTIONS_ENOUGH:
        text = f"the database allows {limit}; set its max_connections to at least {CONNECTIONS_ENOUGH}"
        return Finding("connections", WARN, text)
    return Finding("connections", OK, f"the database allows {limit}")


def database_clock() -> Finding:
    apart = (_value("SELECT clock_timestamp()") - clock.now()).total_seconds()
    if abs(apart) > CLOCKS_APART_SECONDS:
        text = f"the database's clock is {apart:+.0f} s from this machine's; synchronise both (NTP)"
        return Finding("clock", WARN, f"{text}, or unset MAXCLAW_CLOCK_SHIFT_SECONDS")
    return Finding("clock", OK, f"{abs(apart):.2f} s from the database's")


def workers() -> Finding:
    seconds = newest_worker_age()
    if seconds is None or seconds > STALE_SECONDS:
        since = "never" if seconds is None else f"{seconds:.0f} s ago"
        return Finding("workers", WARN, f"last sign of life: {since}; start them with: make run")
    return Finding("workers", OK, f"last sign of life {seconds:.0f} s ago")


def tick() -> Finding:
    schedule = Schedule.objects.filter(name=TICK_NAME).first()
    if schedule is None or schedule.next_run is None:
        return Finding("minute tick", WARN, "is not scheduled; `make run` does it")
    late = (_value("SELECT now()") - schedule.next_run).total_seconds()
    if late > TICK_LATE_SECONDS:
        return Finding("minute tick", WARN, f"is {late:.0f} s late; it runs while the workers do: make run")
    return Finding("minute tick", OK, f"next at {schedule.next_run:%H:%M} UTC")


def queue() -> Finding:
    waiting = OrmQ.objects.count()
    return Finding("queue", OK, f"{waiting} tasks wait or run")


def model() -> Finding:
    """Asks the configured server for its list of models, which costs nothing."""
    if emulator_in_use():
        return Finding("model", WARN, f"answers come from {model_line()}")
    client = anthropic.Anthropic(
        api_key=settings.ANTHROPIC_API_KEY or "none",
        base_url=settings.ANTHROPIC_BASE_URL or settings.EMULATOR_URL or None,
        max_retries=0,
        timeout=MODEL_TIMEOUT_SECONDS,
    )
    try:
        with client:
            client.models.list(limit=1)
    except anthropic.AuthenticationError:
        return Finding("model", FAIL, "the server refuses the key; correct ANTHROPIC_API_KEY")
    except anthropic.APIConnectionError as error:
        reason = error.__cause__ or error
        return Finding("model", FAIL, f"{client.base_url} does not answer ({reason}); check ANTHROPIC_BASE_URL")
    except anthropic.NotFoundError:
        return Finding("model", OK, f"{model_line()} answers; it has no list of models to compare with")
    except anthropic.APIStatusError as error:
        return Finding("model", WARN, f"{model_line()} answered with status {error.status_code}; try again later")
    return Finding("model", OK, f"{model_line()} answers")


def embeddings() -> Finding:
    """Embeds two words: by the local model, or by the configured server."""
    backend = embedding.configured()
    place = settings.EMBEDDING_URL or "on this machine"
    try:
        embedding.check_categories()
        dimensions = backend.embed(["is anybody there"]).shape[1]
    except embedding.EmbeddingError as error:
        return Finding("embeddings", FAIL, error.text)
    said = f"{backend.name} ({place}), {dimensions} dimensions"
    if unread := embedding.unread_categories():
        said += (
            f"; it may not read {', '.join(unread)}, so these conversations are searched by words alone "
            "(MAXCLAW_EMBEDDING_READS)"
        )
    return Finding("embeddings", OK, said)


def _value(query: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None
