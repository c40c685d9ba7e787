"""`manage.py import_facts`: facts that were kept elsewhere."""

import sys
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from agent.import_index import opened
from memory.legacy_import import ImportReport, import_facts

INTERRUPTED_EXIT_CODE = 130


class Command(BaseCommand):
    help = (
        "Imports facts from JSON lines, one object a line: text; optional are kind (about-user, event, pointer), "
        "aspect, applies_to, tone (remark, decision), project and created (ISO 8601). They have no evidence and are "
        "marked as legacy; triage_facts sorts them. Importing again adds nothing. It can be stopped at any time and "
        "run again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="JSON lines; - reads standard input")
        parser.add_argument("--user", required=True, metavar="USERNAME", help="whose facts they become")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = User.objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"No account is called {options['user']}.")
        seen = 0
        for path in options["files"]:
            name = "standard input" if path == "-" else path
            try:
                with opened(path) as file:
                    report = import_facts(
                        owner, file, on_problem=partial(self._problem, name), on_progress=partial(self._progress, name)
                    )
            except OSError as error:
                raise CommandError(f"{name} cannot be read: {error.strerror}.") from None
            except KeyboardInterrupt:
                self.stderr.write("Stopped. Run the same command again to go on where it stopped.")
                sys.exit(INTERRUPTED_EXIT_CODE)
            self._summarise(name, report)
            seen += report.seen
        if not seen:
            raise CommandError("No fact was found to import.")

    def _problem(self, name: str, number: int, why: str) -> None:
        self.stderr.write(f"{name}, line {number}: {why}")

    def _progress(self, name: str, lines: int) -> None:
        self.stderr.write(f"{name}: {lines:,} lines read")

    def _summarise(self, name: str, report: ImportReport) -> None:
        self.stdout.write(
            f"{name}: {report.seen:,} lines, {report.added:,} facts added, {report.already_there:,} known before, "
            f"{report.broken:,} broken."
        )
        if report.undated:
            self.stdout.write(
                f"{report.undated:,} of them hold a relative time and no created from which to tell its date: their "
                "words were kept as they are."
            )
