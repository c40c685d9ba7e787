"""Between tests that commit: every row of theirs goes, as with Django's `flush`, in a tenth of its time.

`flush` truncates each table, which makes new files for all of them and their indexes, and writes content types and
permissions anew. Here the few rows that there are get deleted; what only migrations write stays.
"""

from collections import Counter

from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

# What is deleted still takes its place, by which plans are made: so many rows of a table at most.
LEFT_BEHIND_MAX_ROWS = 1_000
_gone: Counter[str] = Counter()
WRITTEN_BY_MIGRATIONS = {"django_content_type", "auth_permission"}


def empty(connection: BaseDatabaseWrapper) -> None:
    """Delete the rows of all tables that Django knows. Waits for whoever still writes, as truncating does."""
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    tables = [connection.ops.quote_name(name) for name in sorted(set(names) - WRITTEN_BY_MIGRATIONS)]
    looks = " UNION ALL ".join(f"(SELECT %s FROM {table} LIMIT 1)" for table in tables)
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(tables)} IN SHARE ROW EXCLUSIVE MODE")
        cursor.execute(looks, tables)
        written = [table for (table,) in cursor.fetchall()]
        # Neither foreign keys nor rules have a say in what a test leaves behind.
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in written:
            cursor.execute(f"DELETE FROM {table}")
            _gone[table] += cursor.rowcount
    with connection.cursor() as cursor:
        for table in [table for table, rows in _gone.items() if rows > LEFT_BEHIND_MAX_ROWS]:
            cursor.execute(f"VACUUM {table}")
            del _gone[table]


def empty_after_each() -> None:
    """Have the tests that commit end in this way."""

    def end(_test: TransactionTestCase) -> None:
        from llm import wire

        for name in connections:
            try:
                empty(connections[name])
            except OperationalError:  # a deadlock with whoever still writes, which has lost nothing by it
                empty(connections[name])
        wire.forget_headers()

    TransactionTestCase._fixture_teardown = end
