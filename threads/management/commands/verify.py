"""`manage.py verify`: prove that the record still holds what was sent."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from threads.models import Thread
from threads.verification import verify_thread

PROGRESS_EVERY = 100


class Command(BaseCommand):
    help = (
        "Rebuilds every request of the given conversations from the record and compares it with the digest that was"
        " kept when it was sent. Ends with 1 on a difference."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("channels", nargs="*", metavar="CHANNEL", help="channels of the conversations to prove")
        parser.add_argument("--all", action="store_true", help="prove every conversation")

    def handle(self, *args: Any, channels: list[str], all: bool, **options: Any) -> None:
        if bool(channels) == all:
            raise CommandError("Name at least one channel, or give --all for every conversation.")
        threads = Thread.objects.order_by("pk")
        if channels:
            threads = threads.filter(channel__in=[channel for channel in channels if "\x00" not in channel])
            missing = set(channels) - set(threads.values_list("channel", flat=True))
            if missing:
                raise CommandError(f"No conversation has the channel {', '.join(sorted(missing))}.")
        calls = proved = seen = 0
        for seen, thread in enumerate(threads.iterator(chunk_size=PROGRESS_EVERY), start=1):
            report = verify_thread(thread)
            calls += report.calls
            proved += report.proved
            if channels or report.findings:
                self.stdout.write(f"{thread.channel}: {report.proved} of {report.calls} requests proved")
            for finding in report.findings:
                self.stdout.write(self.style.ERROR(f"  call {finding.call_id}: {finding.sentence}"))
            if all and seen % PROGRESS_EVERY == 0:
                self.stderr.write(f"{seen} conversations, {calls} requests")
        self.stdout.write(f"{seen} conversations: {proved} of {calls} requests proved")
        if proved != calls:
            sys.exit(1)
