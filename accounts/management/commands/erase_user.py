"""`manage.py erase_user`: a person's account and everything of theirs, gone."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts import erasing
from accounts.models import User
from maxclaw import rewriting


class Command(BaseCommand):
    help = "Erases a person's account with everything of theirs. Model calls keep their numbers, and nothing else."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, username: str, yes: bool, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"No account is called {username}.")
        if not yes:
            answer = input(f"Everything of {username} will be gone for good. Type the name again to go on: ")
            if answer != username:
                raise CommandError("Nothing was erased: the names differ.")
        erasing.erase_user(user)
        self.stdout.write(f"{username} was erased.")
        if settings.DATABASE_EMBEDDED:
            self.stdout.write(rewriting.rewrite().told())
        else:
            self.stdout.write("The database's own files keep traces: see `rewrite_storage --help`.")
