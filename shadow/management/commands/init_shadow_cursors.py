"""`manage.py init_shadow_cursors`: settle from where shadows read each conversation."""

from typing import Any

from django.core.management.base import BaseCommand

from shadow import cursors


class Command(BaseCommand):
    """Once begun, doing it again adds what is missing and changes nothing that is there."""

    help = "Settle from where shadow turns read each conversation; the first tick does so too."

    def handle(self, *_args: Any, **_options: Any) -> None:
        made = cursors.initialize()
        began = "Shadow turns begin now." if made.activated else "Shadow turns began before."
        self.stdout.write(f"{began} Cursors made: {made.cursors}, baselines made: {made.baselines}.")
