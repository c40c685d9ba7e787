from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from maxclaw.supervisor import Plan, Supervisor


class Command(BaseCommand):
    help = "Run MaxClaw: database, web server, background workers and, without a model, the emulator."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST, help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=settings.PORT, help="port to listen on (default: %(default)s)")
        parser.add_argument("--reload", action="store_true", help="start the web server anew when its code changes")
        parts = parser.add_mutually_exclusive_group()
        parts.add_argument("--web-only", action="store_true", help="no background workers here")
        parts.add_argument("--worker-only", action="store_true", help="no web server here")
        parser.add_argument(
            "--without-database", action="store_true", help="use an embedded database that runs already"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        plan = Plan(
            host=options["host"],
            port=options["port"],
            web=not options["worker_only"],
            worker=not options["web_only"],
            database=not options["without_database"],
            reload=options["reload"],
        )
        code = Supervisor(plan, self._say).run()
        if code:
            raise SystemExit(code)

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
