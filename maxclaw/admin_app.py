"""Puts MaxClaw's admin site in the place of Django's default one."""

from django.contrib.admin.apps import AdminConfig


class MaxclawAdminConfig(AdminConfig):
    default_site = "maxclaw.admin_site.AdminSite"
