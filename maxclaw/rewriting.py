"""After an erasure the database's own files are written anew, so that what was erased stands in none of them either.

A deleted row stays in its table's file until another takes its place, in what the planner knows of a column (its most
common values), in the write-ahead log, and in the queue of notifications, which carry small events whole. So every
table is rewritten, rows that were deleted in normal use included; then the planner's knowledge; then the log and the
queue move on, and their old files go. What is left to do are rows of a table: whoever is stopped goes on later.

This needs the embedded server, which keeps no old file of the log for later use (`wal_recycle`), or a superuser.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import sleep
from typing import Any

from django.db import OperationalError, connection, transaction

from maxclaw import clock
from maxclaw.models import Erasure, StaleFile
from maxclaw.schedule import ADVISORY_LOCK_SPACE

# Conversations and facts go one by one, all day: what went within so long is rewritten together.
GATHERED_FOR = timedelta(hours=1)
# A table is locked while it is rewritten. A large one waits for a moment when no turn runs, but no longer than this: on
# a server where somebody always speaks there may be none.
LARGE_BYTES = 64 * 1024**2
LARGE_WAITS_FOR = timedelta(hours=6)
LOCK_TIMEOUT_SECONDS = 1  # turns queue behind whoever waits for such a lock
STATEMENT_TIMEOUT_SECONDS = 600  # less than a background task may take
SLICE_SECONDS = 240.0
ROUNDS = 3
READERS_SECONDS = 5.0
SWITCHES_MAX = 200
REWRITING_LOCK = 3

STATISTICS = "pg_statistic"
LOG = "pg_wal"
QUEUE = "pg_notify"
LAST = (STATISTICS, LOG, QUEUE)  # in this order, once no table is left

# PostgreSQL's own: a file of the queue has 32 pages, and a notification of this size takes more than half of one.
QUEUE_FILE_PAGES = 32
NOTIFICATION_CHARS = 7_900

logger = logging.getLogger("maxclaw.rewriting")
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Progress:
    """How many parts, tables above all, are still to be rewritten, and of how many; and since when the first erasure
    whose rewriting has not begun waits."""

    left: int
    total: int
    waiting_since: datetime | None

    @property
    def is_done(self) -> bool:
        return self.left == 0 and self.waiting_since is None

    def told(self) -> str:
        """In a sentence, for whoever is at a terminal."""
        if self.is_done:
            return "Nothing is left to be rewritten of the database's files."
        if self.left:
            return f"{self.left} of {self.total} parts of the database's files are left to be rewritten."
        return f"All {self.total} parts of the database's files are still to be rewritten."


def ask(*, at_once: bool) -> None:
    """Note, in the transaction that erases, that files are to be rewritten: at once, or with others within the hour."""
    now = clock.now()
    Erasure.objects.create(asked=now, due=now if at_once else now + GATHERED_FOR)


def is_due(now: datetime) -> bool:
    """Whether there is something to rewrite now."""
    return StaleFile.objects.exists() or Erasure.objects.filter(due__lte=now).exists()


def progress() -> Progress:
    """How far it is."""
    oldest = Erasure.objects.order_by("asked").values_list("asked", flat=True).first()
    return Progress(StaleFile.objects.count(), len(_parts()), oldest)


def ask_for_all() -> None:
    """Have everything rewritten, whether or not something was erased."""
    ask(at_once=True)
    _take()


def rewrite(*, large: bool = True, tell: Tell | None = None) -> Progress:
    """Rewrite what was erased from, for SLICE_SECONDS at most, large tables too unless told otherwise; those that have
    waited for LARGE_WAITS_FOR in any case. Outside any transaction. Does nothing while another process is at it. `tell`
    gets the name of each part that is done."""
    with _alone() as alone:
        if alone:
            _take()
            until = clock.monotonic() + SLICE_SECONDS
            for _round in range(ROUNDS):
                if not _rewrite_some(until, large, tell) or clock.monotonic() > until:
                    break
                sleep(LOCK_TIMEOUT_SECONDS)
    return progress()


def is_superuser() -> bool:
    """Whether the role may rewrite the planner's knowledge and end the log's files, too."""
    return bool(_value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user"))


def _take() -> None:
    """Turn the erasures that were committed into parts to rewrite."""
    with transaction.atomic(), connection.cursor() as cursor:
        if not Erasure.objects.all().delete()[0]:
            return
        # Every row that they deleted was deleted by an older transaction than this one.
        cursor.execute(
            "INSERT INTO maxclaw_stalefile (name, before, since)"
            " SELECT unnest(%s::text[]), pg_current_xact_id()::text::bigint, %s"
            " ON CONFLICT (name) DO UPDATE SET before = excluded.before",
            [_parts(), clock.now()],
        )


def _parts() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'm') AND relnamespace = current_schema()::regnamespace"
            " ORDER BY pg_total_relation_size(oid)"
        )
        tables = [name for (name,) in cursor.fetchall()]
    return [*tables, *(LAST if is_superuser() else ())]


def _rewrite_some(until: float, large: bool, tell: Tell | None) -> bool:
    """Rewrite once whatever can be. Returns whether something is left."""
    stale = dict(StaleFile.objects.values_list("name", "before"))
    overdue = set(StaleFile.objects.filter(since__lte=clock.now() - LARGE_WAITS_FOR).values_list("name", flat=True))
    order = _parts()
    StaleFile.objects.exclude(name__in=order).delete()  # a table that there is no more
    for name in [part for part in order if part in stale]:
        if clock.monotonic() > until:
            break
        if name in LAST and StaleFile.objects.exclude(name__in=LAST[LAST.index(name) :]).exists():
            break
        if not large and name not in {*LAST, *overdue} and _size(name) > LARGE_BYTES:
            continue
        try:
            done = _rewrite(name, stale[name])
        except OperationalError as error:
            # In use for too long, or no room on the disk: the next time.
            logger.info("The rewriting of %s was put off (%s).", name, getattr(error.__cause__, "sqlstate", ""))
            continue
        if done:
            StaleFile.objects.filter(name=name, before=stale[name]).delete()
            if tell is not None:
                tell(name)
    return StaleFile.objects.exists()


def _rewrite(name: str, before: int) -> bool:
    if name == LOG:
        return _end_log_files()
    if name == QUEUE:
        return _end_queue_files()
    if name == STATISTICS:
        before = int(_value("SELECT pg_current_xact_id()::text"))
    return _nobody_reads_rows_before(before) and _rewrite_table(name)


def _rewrite_table(name: str) -> bool:
    """Returns whether it has a new file: who does not own a table is only warned."""
    table = connection.ops.quote_name(name)
    with connection.cursor() as cursor:
        old = _filenode(name)
        cursor.execute(f"VACUUM (FULL) {table}")
        if _filenode(name) == old:
            return False
        if name == STATISTICS:
            return True
        if is_superuser():
            # ANALYZE leaves what it knew of a table that is empty now.
            cursor.execute(
                "DELETE FROM pg_statistic WHERE starelid = %s::regclass OR starelid IN"
                " (SELECT indexrelid FROM pg_index WHERE indrelid = %s::regclass)",
                [table, table],
            )
        cursor.execute(f"ANALYZE {table}")
    return True


def _nobody_reads_rows_before(before: int) -> bool:
    """Wait until no transaction is left that might see a row which one older than `before` deleted: rewriting a table
    keeps such rows."""
    deadline = clock.monotonic() + READERS_SECONDS
    while _value(
        "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND greatest(age(backend_xmin), age(backend_xid)) >= age(%s::text::xid8::xid))",
        [str(before)],
    ):
        if clock.monotonic() > deadline:
            return False
        sleep(0.05)
    return True


def _end_log_files() -> bool:
    """Have the log go on in a file that was never used before, and those until now removed. Returns whether they are:
    archiving, a replica or `wal_keep_size` holds them back."""
    last = _value("SELECT pg_walfile_name(pg_current_wal_insert_lsn())")
    # Files made for later use may be old ones under new names, where the server once recycled them.
    ahead = _value("SELECT max(name) FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'")
    for _switch in range(SWITCHES_MAX):
        _value("SELECT pg_switch_wal()")
        # Without a record behind it, the next switch would do nothing.
        _value("SELECT pg_logical_emit_message(false, 'maxclaw', '')")
        if _value("SELECT pg_walfile_name(pg_current_wal_insert_lsn())") > ahead:
            break
    with connection.cursor() as cursor:
        cursor.execute("CHECKPOINT")
    return bool(_value("SELECT min(name) > %s FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'", [max(last, ahead)]))


def _end_queue_files() -> bool:
    """Have the queue of notifications go on in a file that was never used before. Returns whether those until now are
    removed: whoever listens and is behind holds them back."""
    until_now = _queue_files()
    _notify_nobody(2 * QUEUE_FILE_PAGES)
    deadline = clock.monotonic() + READERS_SECONDS
    while until_now & _queue_files():
        if clock.monotonic() > deadline:
            return False
        sleep(0.05)
        _notify_nobody(QUEUE_FILE_PAGES)  # the queue's end moves when its head does
    return True


def _queue_files() -> set[str]:
    return set(_value("SELECT array(SELECT pg_ls_dir('pg_notify'))"))


def _notify_nobody(pages: int) -> None:
    for _page in range(pages):
        _value("SELECT pg_notify('nobody', repeat(' ', %s))", [NOTIFICATION_CHARS])


@contextmanager
def _alone() -> Iterator[bool]:
    """One process at a time, whose statements wait for locks no longer than turns may wait."""
    key = [ADVISORY_LOCK_SPACE, REWRITING_LOCK]
    if not _value("SELECT pg_try_advisory_lock(%s, %s)", key):
        yield False
        return
    try:
        _value("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_TIMEOUT_SECONDS}s"])
        _value("SELECT set_config('statement_timeout', %s, false)", [f"{STATEMENT_TIMEOUT_SECONDS}s"])
        yield True
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")
            cursor.execute("RESET statement_timeout")
        _value("SELECT pg_advisory_unlock(%s, %s)", key)


def _size(name: str) -> int:
    return int(_value("SELECT pg_total_relation_size(%s::regclass)", [connection.ops.quote_name(name)]))


def _filenode(name: str) -> int:
    return int(_value("SELECT pg_relation_filenode(%s::regclass)", [connection.ops.quote_name(name)]))


def _value(query: str, values: Sequence[str | int] | None = None) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        row = cursor.fetchone()
    return row[0]
