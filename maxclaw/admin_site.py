"""The admin: signed in to like every other page, and the one place with a looser content policy.

Its theme evaluates expressions (Alpine) and styles elements in place; nothing else of MaxClaw does, so
nothing else may.
"""

from collections.abc import Callable
from typing import Any

from csp.constants import UNSAFE_EVAL, UNSAFE_INLINE
from csp.decorators import csp_update
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from unfold.sites import UnfoldAdminSite

View = Callable[..., Any]

looser_policy = csp_update({"script-src": [UNSAFE_EVAL], "style-src": [UNSAFE_INLINE]})


class AdminSite(UnfoldAdminSite):
    """The theme's site, under MaxClaw's sign-in and policy."""

    def admin_view(self, view: View, cacheable: bool = False) -> View:
        return looser_policy(super().admin_view(view, cacheable))

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """One sign-in page for all, so that throttling holds here too. Someone signed in who is not staff
        gets 403."""
        if request.user.is_authenticated:
            raise PermissionDenied
        return redirect_to_login(request.GET.get("next") or request.get_full_path())
