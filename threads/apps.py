from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ThreadsConfig(AppConfig):
    name = "threads"
    verbose_name = _("Conversations")

    def ready(self) -> None:
        from threads import signals  # noqa: F401 (registers the receiver that makes each account's main thread)
