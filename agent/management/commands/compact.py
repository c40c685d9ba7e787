"""`manage.py compact CHANNEL...`: renew the context of conversations now."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agent import renewal
from agent.models import TaskFrame
from agent.refusals import Refused
from maxclaw import clock
from threads.models import Generation, Thread


class Command(BaseCommand):
    """Asks the server's turn runner, which does it under the lease, and waits for it."""

    help = "Renew the context of conversations: a summary is made, and a new generation opens with it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("channels", nargs="+", metavar="CHANNEL")
        parser.add_argument("--wait", type=int, default=300, metavar="SECONDS", help="how long to wait for each")

    def handle(self, *_args: Any, **options: Any) -> None:
        failed = 0
        for channel in options["channels"]:
            thread = Thread.objects.select_related("owner").filter(channel=channel, deleted__isnull=True).first()
            if thread is None:
                self.stderr.write(f"{channel}: there is no such conversation.")
                failed += 1
                continue
            before = self._newest(thread)
            try:
                frame = renewal.request(thread.owner, channel)
            except Refused as refusal:
                self.stderr.write(f"{channel}: {refusal.sentence}")
                failed += 1
                continue
            failed += not self._wait(channel, frame, before, options["wait"])
        if failed:
            raise CommandError(f"{failed} of {len(options['channels'])} conversations were not renewed.")

    def _newest(self, thread: Thread) -> int:
        return Generation.objects.filter(thread=thread).order_by("-ordinal").values_list("ordinal", flat=True)[0]

    def _wait(self, channel: str, frame: TaskFrame, before: int, seconds: int) -> bool:
        deadline = clock.monotonic() + seconds
        while clock.monotonic() < deadline:
            frame.refresh_from_db()
            if frame.state == TaskFrame.State.DONE:
                now = self._newest(frame.thread)
                if now == before:
                    self.stderr.write(f"{channel}: {frame.notice} The context is as it was.")
                    return False
                self.stdout.write(f"{channel}: renewed, now in generation {now}.")
                return True
            if frame.state == TaskFrame.State.FAILED:
                self.stderr.write(f"{channel}: interrupted; the context is as it was.")
                return False
            time.sleep(0.2)
        self.stderr.write(f"{channel}: not done after {seconds} seconds. Is the server running (manage.py serve)?")
        return False
