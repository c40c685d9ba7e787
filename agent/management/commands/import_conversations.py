"""`manage.py import_conversations`: conversations that were held elsewhere, from JSON lines."""

import sys
from dataclasses import dataclass
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import User
from agent.import_index import ConversationIndex, FileChanged, index, opened
from agent.importing import NotImported, Outcome, import_conversation

LINES_PER_SIGN_OF_LIFE = 1_000
INTERRUPTED_EXIT_CODE = 130


@dataclass
class _Counts:
    """What the summary says."""

    lines: int = 0
    left_out: int = 0
    added: int = 0
    already_there: int = 0
    new: int = 0
    grown: int = 0
    unchanged: int = 0

    def count(self, outcome: Outcome) -> None:
        self.added += outcome.added
        self.already_there += outcome.already_there
        self.left_out += len(outcome.repeated)
        if outcome.is_new:
            self.new += 1
        elif outcome.added:
            self.grown += 1
        else:
            self.unchanged += 1


class Command(BaseCommand):
    help = (
        "Imports conversations from files of JSON lines. A line is one message: conversation (any stable id), role "
        "(user, assistant, tool), text, created (ISO 8601; without an offset it is UTC); optional are id (a stable id "
        "of the message), name (who speaks) and title. Importing again adds only what is new. It can be stopped at "
        "any time and run again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE", help="a file of JSON lines; - reads standard input")
        parser.add_argument("--user", required=True, metavar="USERNAME", help="whose conversations they become")
        parser.add_argument("--title-prefix", default="", metavar="TEXT", help="put this before each title")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be imported")

    def handle(self, *args: Any, **options: Any) -> None:
        owner = User.objects.filter(username=options["user"]).first()
        if owner is None:
            raise CommandError(f"No account is called {options['user']}.")
        self._owner = owner
        self._prefix: str = options["title_prefix"]
        self._dry_run: bool = options["dry_run"]
        self._counts = _Counts()
        self._sign_shown = False
        try:
            for path in options["files"]:
                self._import_file(path)
        except KeyboardInterrupt:
            self._summarise()
            self._report("Stopped. Run the same command again to go on where it stopped.")
            sys.exit(INTERRUPTED_EXIT_CODE)
        self._summarise()
        if not self._counts.lines:
            raise CommandError("No message was found to import.")

    def _import_file(self, path: str) -> None:
        name = "standard input" if path == "-" else path
        try:
            with opened(path) as file:
                self._import_conversations(name, file, self._read(name, file))
        except FileChanged:
            self._report(f"{name} was changed while it was read. Import it again to get the rest.")
        except OSError as error:
            self._report(f"{name} cannot be read: {error.strerror or error}.")

    def _read(self, name: str, file: IO[bytes]) -> list[ConversationIndex]:
        def on_problem(number: int, reason: str) -> None:
            self._counts.left_out += 1
            self._report(f"{name}, line {number}: {reason}")

        def on_line(number: int) -> None:
            if number % LINES_PER_SIGN_OF_LIFE == 0:
                self._sign_of_life(f"{name}: {number:,} lines read")

        found = list(index(file, on_problem, on_line).values())
        self._counts.lines += sum(map(len, found))
        return found

    def _import_conversations(self, name: str, file: IO[bytes], found: list[ConversationIndex]) -> None:
        total, done = sum(map(len, found)), 0

        def on_messages(count: int) -> None:
            nonlocal done
            done += count
            self._sign_of_life(f"{name}: {done:,} of {total:,} messages stored")

        for conversation in found:
            before = done
            try:
                outcome = import_conversation(
                    self._owner,
                    file,
                    conversation,
                    title_prefix=self._prefix,
                    dry_run=self._dry_run,
                    on_messages=on_messages,
                )
            except NotImported as refused:
                self._report(f"{name}, conversation {conversation.source}: {refused}")
                self._counts.left_out += len(conversation)
            else:
                self._counts.count(outcome)
                for line in outcome.repeated:
                    self._report(f"{name}, line {line}: An earlier line has the same id.")
            done = before + len(conversation)

    def _summarise(self) -> None:
        counts = self._counts
        self._clear_sign()
        verb = "Would import" if self._dry_run else "Imported"
        self.stdout.write(
            f"{verb} {_number(counts.added, 'message')}: {_number(counts.new, 'new conversation')}, "
            f"{counts.grown:,} that grew, {counts.unchanged:,} unchanged. "
            f"{_number(counts.already_there, 'message')} already there, {_number(counts.left_out, 'line')} left out."
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


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
