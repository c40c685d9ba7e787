from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext_lazy as _


class AgentConfig(AppConfig):
    name = "agent"
    verbose_name = _("Agent")

    def ready(self) -> None:
        # Found the way the admin finds admin.py: what upper apps add, lower apps never import.
        autodiscover_modules("tools", "prompts", "context", "ticks")
