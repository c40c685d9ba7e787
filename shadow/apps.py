from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ShadowConfig(AppConfig):
    name = "shadow"
    verbose_name = _("Shadow")

    def ready(self) -> None:
        from shadow import receivers

        receivers.connect()
