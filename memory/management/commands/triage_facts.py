"""`manage.py triage_facts`: sort the facts that were imported without evidence."""

import sys
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from llm import budgets, router
from llm.errors import ModelError
from memory.triage import TriageReport, triage

INTERRUPTED_EXIT_CODE = 130


class Command(BaseCommand):
    help = (
        "Looks through a person's imported facts: what memory does not take is retired, the person's own words found "
        "again are rewritten with that message as evidence, pointers are left and counted. A light model judges each "
        "fact once, within the budget. It can be stopped at any time and run again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", required=True, metavar="USERNAME", help="whose facts they are")

    def handle(self, *_args: Any, **options: Any) -> None:
        owner = User.objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"No account is called {options['user']}.")
        try:
            report = async_to_sync(triage)(owner, self._progress)
        except budgets.BudgetExhausted as spent:
            raise CommandError(f"{spent.sentence} Run it again from {spent.until:%Y-%m-%d %H:%M} UTC.") from None
        except router.NoModelForCategory as error:
            raise CommandError(str(error)) from None
        except ModelError as error:
            raise CommandError(f"The model did not answer ({error.kind.value}). Run it again to go on.") from None
        except KeyboardInterrupt:
            self.stderr.write("Stopped. Run the same command again to go on where it stopped.")
            sys.exit(INTERRUPTED_EXIT_CODE)
        self._summarise(report)

    def _progress(self, report: TriageReport, total: int) -> None:
        self.stderr.write(f"{report.seen:,} of {total:,} facts looked through")

    def _summarise(self, report: TriageReport) -> None:
        self.stdout.write(
            f"{report.seen:,} facts: {report.retired:,} out of scope and retired, {report.restated:,} found again in "
            f"the person's own words, {report.pointers:,} pointers left, {report.left:,} others left, "
            f"{report.unjudged:,} not judged."
        )
