"""`manage.py shadow_compare`: what shadows proposed beside what the steward wrote, over some days."""

from dataclasses import replace
from datetime import date
from typing import Any

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError, CommandParser

from shadow import comparison_output, comparison_report, pairing
from shadow.comparison import PairingRefused
from shadow.comparison_reading import DAYS, Window, last_week
from shadow.comparison_report import Report

# Beyond these some time zone has no such day, or none before or after it.
FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(9000, 1, 1)
FORMATS = {
    "text": comparison_output.to_text,
    "json": comparison_output.to_json,
    "csv": comparison_output.to_csv,
}


class Command(BaseCommand):
    help = (
        "Compares what shadows proposed with what the steward wrote in some days: by equal words, by shared evidence, "
        "and with --semantic by a light model, whose calls are charged to the accounts compared. Reads in a "
        "transaction in which the database refuses writes. Prints ids and numbers, nobody's words."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--first", type=date.fromisoformat, metavar="YYYY-MM-DD", help="the first day")
        parser.add_argument(
            "--last", type=date.fromisoformat, metavar="YYYY-MM-DD", help=f"the last day; {DAYS} days up to today"
        )
        parser.add_argument("--format", choices=FORMATS, default="text")
        parser.add_argument("--semantic", action="store_true", help="let a light model pair what says the same")
        parser.add_argument("--dry-run", action="store_true", help="with --semantic: only say how many calls it takes")
        parser.add_argument(
            "--most-calls", type=int, default=pairing.CALLS_MAX, metavar="N", help="ask no more often than this"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for name in ("first", "last"):
            if options[name] and not FIRST_DAY <= options[name] <= LAST_DAY:
                raise CommandError(f"--{name} {options[name]}: give a day from {FIRST_DAY} to {LAST_DAY}.")
        week = last_week()
        last = options["last"] or (max(options["first"], week.last) if options["first"] else week.last)
        window = Window(options["first"] or last - (week.last - week.first), last)
        if window.first > window.last:
            raise CommandError("The first day is after the last.")
        found = comparison_report.report(window)
        if options["semantic"] and not options["dry_run"]:
            found = self._judged(found, options["most_calls"])
        self.stdout.write(FORMATS[options["format"]](found))

    def _judged(self, found: Report, most_calls: int) -> Report:
        try:
            judged = async_to_sync(pairing.judge)(found.steward, found.shadow, most_calls=most_calls)
        except PairingRefused as refusal:
            raise CommandError(f"{refusal} No pair of this answer counts; run the command again.") from None
        return replace(found, semantic=comparison_report.semantic(judged))
