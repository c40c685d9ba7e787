"""Two transactions at once: work on a connection of its own, and how to tell that one waits for the other."""

import threading

from django.db import connection, transaction

from maxclaw import clock


class Elsewhere:
    """The same work on a connection of its own, held open until it is told to commit."""

    def __init__(self, work):
        self.began, self.may_commit = threading.Event(), threading.Event()
        self.result, self.error = None, None
        self.work = work
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            with transaction.atomic():
                self.result = self.work()
                self.began.set()
                self.may_commit.wait(20)
        except Exception as error:
            self.error = error
        finally:
            self.began.set()
            connection.close()

    def finish(self):
        self.may_commit.set()
        self.thread.join(20)
        return self.result


def wait_until_blocked(count=1):
    """Until as many transactions of this database wait for another."""
    deadline = clock.monotonic() + 20
    while clock.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0"
            )
            if cursor.fetchone()[0] >= count:
                return
    raise AssertionError("nothing waited")
