"""`manage.py rewrite_storage`: what was erased goes out of the database's own files, too."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from maxclaw import rewriting

ELSEWHERE = (
    "Each table is locked while it is rewritten: seconds for most, and turns wait meanwhile. It takes as much free "
    "disk as the largest table. Archives of the write-ahead log, replicas and backups keep what they have, and files "
    "of the log that the server recycles (wal_recycle) keep it until they are written over."
)
NO_SUPERUSER = (
    "Only a superuser can do the rest. The planner keeps values of tables that are empty now: DELETE FROM "
    "pg_statistic, ANALYZE and VACUUM FULL pg_statistic. SELECT pg_switch_wal() and CHECKPOINT end the log's files."
)


class Command(BaseCommand):
    help = (
        "Rewrites the database's files so that nothing erased stands in them: every table, what the planner keeps of "
        "their columns, the write-ahead log. With the embedded database background workers do so after each erasure; "
        "on another server this command alone does. It locks each table in turn and needs as much free disk as the "
        "largest one, a role that owns the tables, and a superuser for the planner's values and the log. May be "
        "stopped and started again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--status", action="store_true", help="only say what is left to be rewritten")

    def handle(self, *_arguments: Any, status: bool, **options: Any) -> None:
        if status:
            self.stdout.write(rewriting.progress().told())
            return
        if not settings.DATABASE_EMBEDDED:
            self.stdout.write(ELSEWHERE)
        if rewriting.progress().is_done:
            rewriting.ask_for_all()
        end = None
        try:
            while end is None or not end.is_done:
                before, end = end, rewriting.rewrite(tell=self._tell)
                if before is not None and end.left >= before.left:
                    raise CommandError(
                        f"{end.told()} They are in use, or the role does not own them. Run it again later."
                    )
        except KeyboardInterrupt:
            raise CommandError("Stopped. What is done stays; start it again to go on.") from None
        self.stdout.write(end.told())
        if not rewriting.is_superuser():
            self.stdout.write(NO_SUPERUSER)

    def _tell(self, name: str) -> None:
        self.stdout.write(f"{name} rewritten")
