"""The admin: signed in to like every other page, and the one place with a looser content policy.

Its theme evaluates expressions (Alpine) and styles elements in place; nothing else of MaxClaw does, so
nothing else may.
"""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from csp.constants import UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_update
from django.apps import apps
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.module_loading import autodiscover_modules
from django.utils.translation import gettext as _
from django.views.i18n import JavaScriptCatalog
from unfold.sites import UnfoldAdminSite

from maxclaw.admin_figures import visible_groups

View = Callable[..., Any]

looser_policy = csp_update({"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]})


class ScriptWords(JavaScriptCatalog):
    """Django's words in the admin's scripts, and ours for those that it leaves in English."""

    def get_paths(self, packages: list[str]) -> list[str]:
        return [*super().get_paths(packages), *map(str, settings.LOCALE_PATHS)]


class AdminSite(UnfoldAdminSite):
    """The theme's site, under MaxClaw's sign-in and policy."""

    index_template = "admin/console.html"

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        return looser_policy(with_rules_told(super().admin_view(view, cacheable)))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """One sign-in page for all, so that throttling holds here too. Someone signed in who is not staff
        gets 403."""
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or request.get_full_path())

    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Staff change their password where everybody does: guessing the old one is throttled there."""
        return HttpResponseRedirect(reverse("account-password"))

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """One way out for all, too."""
        return LogoutView.as_view(next_page="login")(request)

    def i18n_javascript(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponseBase:
        return ScriptWords.as_view(packages=["django.contrib.admin"])(request)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """The first page: the numbers that an operator needs, each for those who may see what it counts."""
        context = {"title": _("Overview"), "groups": visible_groups(request), **(extra_context or {})}
        return super().index(request, context)


def with_rules_told(view: View) -> View:
    """Answer a write that a named rule of the database refused with the rule's sentence on the page it came from."""

    @wraps(view)
    def told(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        try:
            response = view(request, *args, **kwargs)
        except IntegrityError as error:
            sentence = broken_rule(error)
            if sentence is None:
                raise
            messages.error(request, _("Nothing was changed. %(rule)s") % {"rule": sentence})
            response = HttpResponseRedirect(request.get_full_path())
        patch_cache_control(response, no_store=True)
        return response

    return told


def broken_rule(error: IntegrityError) -> str | None:
    """The sentence of the rule behind a refused write, of whichever app; None when no app names it."""
    autodiscover_modules("rules")
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
    for config in apps.get_app_configs():
        rules = getattr(sys.modules.get(f"{config.name}.rules"), "RULES", {})
        if name in rules:
            return str(rules[name])
    return None
