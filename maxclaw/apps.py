from django.apps import AppConfig


class MaxclawConfig(AppConfig):
    name = "maxclaw"
    verbose_name = "MaxClaw"
