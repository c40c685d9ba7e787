"""`manage.py export_user`: everything of a person's, as JSON lines."""

import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import erasing
from accounts.models import User


class Command(BaseCommand):
    help = "Writes everything that is kept of a person as JSON lines, one record a line."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--to", type=Path, metavar="FILE", help="write to this file instead of the terminal")

    def handle(self, *args: Any, username: str, to: Path | None, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"No account is called {username}.")
        if to is None:
            for record in erasing.export_user(user):
                self.stdout.write(json.dumps(record, ensure_ascii=False))
            return
        # A file that could not be written whole is no export.
        draft = to.with_name(f"{to.name}.part")
        count = 0
        try:
            with draft.open("w", encoding="utf-8") as file:
                for record in erasing.export_user(user):
                    file.write(json.dumps(record, ensure_ascii=False) + "\n")
                    count += 1
            draft.replace(to)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise CommandError(f"{to} cannot be written: {error.strerror}.") from error
        sys.stderr.write(f"{count} records written to {to}\n")
