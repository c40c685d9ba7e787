from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils.translation import gettext_lazy as _

from maxclaw.configuration import ConfigurationError, exit_with


class LlmConfig(AppConfig):
    name = "llm"
    verbose_name = _("Models")

    def ready(self) -> None:
        """Refuse a faulty catalog at start, in one line."""
        from llm import catalog, wire

        try:
            catalog.load_catalog()
        except ConfigurationError as error:
            exit_with(error)
        post_migrate.connect(wire.forget_headers, sender=self, dispatch_uid="llm.forget_headers")
