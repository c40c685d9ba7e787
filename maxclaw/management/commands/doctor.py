import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from maxclaw.doctor import FAIL, WARN, Finding, examine


class Command(BaseCommand):
    help = "Check what MaxClaw depends on and say what to do. Ends with 1 when something fails."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="one JSON array instead of lines for people")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = []
        for finding in examine():
            findings.append(finding)
            if not options["json"]:
                self._show(finding)
        if options["json"]:
            self.stdout.write(json.dumps([asdict(finding) for finding in findings], indent=2))
        if any(finding.level == FAIL for finding in findings):
            raise SystemExit(1)

    def _show(self, finding: Finding) -> None:
        style = {FAIL: self.style.ERROR, WARN: self.style.WARNING}.get(finding.level, self.style.SUCCESS)
        self.stdout.write(f"{style(f'{finding.level:<5}')} {finding.subject:<14} {finding.text}")
