"""`manage.py import_conversations`: conversations that were held elsewhere."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from agent.import_archive import NoExport
from agent.import_index import FileChanged, opened
from agent.import_run import ImportRun, Report

INTERRUPTED_EXIT_CODE = 130


class Command(BaseCommand):
    help = (
        "Imports conversations from data exports of ChatGPT and Claude (the archive as it was sent, or the "
        "conversations.json in it) and from files of JSON lines; the content tells which it is. A JSON line is one "
        "message: conversation (any stable id), role (user, assistant, tool), text, created (ISO 8601; without an "
        "offset it is UTC); optional are id (a stable id of the message), name (who speaks) and title. Importing again "
        "adds only what is new. It can be stopped at any time and run again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="an export or JSON lines; - reads standard input")
        parser.add_argument("--user", required=True, metavar="USERNAME", help="whose conversations they become")
        parser.add_argument("--title-prefix", default="", metavar="TEXT", help="put this before each title")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be imported")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = User.objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"No account is called {options['user']}.")
        self._dry_run: bool = options["dry_run"]
        self._sign_shown = False
        self._name = ""
        report = Report()
        run = ImportRun(
            owner,
            report,
            title_prefix=options["title_prefix"],
            dry_run=self._dry_run,
            on_problem=lambda where, why: self._report(f"{self._name}, {where}: {why}"),
            on_progress=lambda _done, _total, sentence: self._sign_of_life(f"{self._name}: {sentence}"),
        )
        try:
            for path in options["files"]:
                self._import_file(run, path)
        except KeyboardInterrupt:
            self._summarise(report)
            self._report("Stopped. Run the same command again to go on where it stopped.")
            sys.exit(INTERRUPTED_EXIT_CODE)
        self._summarise(report)
        if not report.seen:
            raise CommandError("No message was found to import.")

    def _import_file(self, run: ImportRun, path: str) -> None:
        self._name = "standard input" if path == "-" else path
        try:
            with opened(path) as file:
                run.take(file, self._name)
        except FileChanged:
            self._report(f"{self._name} was changed while it was read. Import it again to get the rest.")
        except NoExport as refusal:
            self._report(f"{self._name}: {refusal}")
        except OSError as error:
            self._report(f"{self._name} cannot be read: {error.strerror or error}.")

    def _summarise(self, report: Report) -> None:
        self._clear_sign()
        verb = "Would import" if self._dry_run else "Imported"
        parts = [
            _number(report.new, "new conversation"),
            f"{report.grown:,} that grew",
            f"{report.unchanged:,} unchanged",
        ]
        if report.branches:
            parts.append(_number(report.branches, "branch", "branches"))
        if report.empty:
            parts.append(f"{report.empty:,} without messages")
        self.stdout.write(
            f"{verb} {_number(report.added, 'message')}: {', '.join(parts)}. "
            f"{_number(report.already_there, 'message')} already there, {report.left_out:,} left out."
        )

    def _report(self, text: str) -> None:
        self._clear_sign()
        self.stderr.write(text)

    def _sign_of_life(self, text: str) -> None:
        """Progress, on a terminal alone: a log needs the summary only."""
        if self.stderr.isatty():
            self.stderr.write(f"\r\x1b[K{text}", ending="")
            self.stderr.flush()
            self._sign_shown = True

    def _clear_sign(self) -> None:
        if self._sign_shown:
            self.stderr.write("\r\x1b[K", ending="")
            self._sign_shown = False


def _number(count: int, noun: str, plural: str = "") -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"
