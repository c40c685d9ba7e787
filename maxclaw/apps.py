import os

from django.apps import AppConfig
from django.conf import settings

from maxclaw.processes import SUPERVISOR_VARIABLE, die_with_parent, forks_die_with_parent


class MaxclawConfig(AppConfig):
    name = "maxclaw"
    verbose_name = "MaxClaw"

    def ready(self) -> None:
        from maxclaw.column_names import name_columns

        name_columns()
        from maxclaw.task_failures import keep_words_out

        keep_words_out()
        if os.environ.get(SUPERVISOR_VARIABLE):
            # Also for the process that a reloading server starts, which no supervisor started itself.
            die_with_parent(os.getppid())
        if settings.ROLE in ("web", "worker"):
            # Before the first turn waits for it, and before the workers fork.
            import anthropic  # noqa: F401
        if settings.ROLE == "worker":
            from maxclaw.heartbeat import listen_to_workers

            forks_die_with_parent()
            listen_to_workers()
