"""What a `manage.py` command says when the database is not ready for it."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db.utils import DatabaseError, OperationalError, ProgrammingError

UNDEFINED = {"42P01", "42703"}  # PostgreSQL's codes for a table and a column that do not exist


@contextmanager
def in_a_sentence(arguments: Sequence[str]) -> Iterator[None]:
    """End a command with one line that says what to do, and exit code 1, where its database does not answer, is too old
    or lacks migrations. Any other error stays what it is. `arguments` is the command line after `manage.py`."""
    try:
        yield
    except (OperationalError, ProgrammingError) as error:
        sentence = _what_it_lacks(error)
        if sentence is None or "migrate" in arguments:
            raise
        sys.stderr.write(f"maxclaw: {sentence}\n")
        raise SystemExit(1) from None


def _what_it_lacks(error: DatabaseError) -> str | None:
    # Not before the command has set Django up.
    from maxclaw.preparation import PreparationError, check_database, missing_migrations

    try:
        check_database()
        # What does not exist may be what a migration makes.
        missing = missing_migrations() if getattr(error.__cause__, "sqlstate", "") in UNDEFINED else 0
    except PreparationError as unprepared:
        return str(unprepared)
    return f"The database lacks {missing} migrations. Run: python manage.py migrate" if missing else None
