"""A person's own pages: settings, password, a copy of everything, the end of everything."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import PasswordChangeForm
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import PasswordChangeView
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse, reverse_lazy
from django.utils import translation
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import erasing
from accounts.downloads import json_lines
from accounts.forms import EraseForm, OwnPasswordForm, PreferencesForm
from accounts.models import User
from accounts.time_zones import zone_choices
from maxclaw import clock, rewriting


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    """Settings, and the ways to everything else that one does with an account."""
    user = _user(request)
    form = PreferencesForm(request.POST if request.method == "POST" else None, instance=user)
    if request.method == "POST":
        if form.is_valid():
            form.save()
            return _saved(request, user)
        user.refresh_from_db()
    return render(
        request,
        "accounts/account.html",
        {"form": form, "zones": zone_choices(translation.get_language() or "en", user.time_zone)},
    )


def _saved(request: HttpRequest, user: User) -> HttpResponse:
    with translation.override(user.language):
        messages.success(request, _("Saved."))
    response = redirect("account")
    # The sign-in page speaks the language too, once the person has signed out.
    response.set_cookie(
        settings.LANGUAGE_COOKIE_NAME,
        user.language,
        max_age=31_536_000,
        samesite="Lax",
        secure=settings.SESSION_COOKIE_SECURE,
    )
    return response


@method_decorator([never_cache, sensitive_post_parameters()], name="dispatch")
class OwnPasswordView(LoginRequiredMixin, PasswordChangeView):
    """Another password. Every other login of the account ends with the old one."""

    template_name = "accounts/password.html"
    form_class = OwnPasswordForm
    success_url = reverse_lazy("account")

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        response = super().form_valid(form)
        messages.success(self.request, _("Your password was changed. You are signed out everywhere else."))
        return response


@never_cache
@login_required
@require_POST
def export(request: HttpRequest) -> HttpResponseBase:
    """Everything of one's own as JSON lines, one record a line. A POST, so that no other site can have it made."""
    user = _user(request)
    day = user.local(clock.now()).date()
    return json_lines(erasing.export_user(user), f"maxclaw-{user.username}-{day}.jsonl")


@never_cache
@sensitive_post_parameters()
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def erase(request: HttpRequest) -> HttpResponse:
    """Erase everything of one's own, the account too, after its name and its password were given."""
    user = _user(request)
    form = EraseForm(user, request, request.POST if request.method == "POST" else None)
    keeper = _keeps_the_server_alone(user)
    if request.method == "POST" and not keeper and form.is_valid():
        with transaction.atomic():
            # Signing out tells the open pages, and notes of it go with everything else.
            logout(request)
            erasing.erase_user(user)
        return HttpResponseRedirect(reverse("account-erased"))
    context = {
        "form": form,
        "holdings": erasing.holdings(user),
        "keeper": keeper,
        "embedded": settings.DATABASE_EMBEDDED,
    }
    return render(request, "accounts/erase.html", context)


def _keeps_the_server_alone(user: User) -> bool:
    """Whether the others would be left without anybody who can administer the server."""
    others = User.objects.exclude(pk=user.pk).filter(is_active=True)
    return user.is_superuser and others.exists() and not others.filter(is_superuser=True).exists()


@never_cache
@require_safe
def erased(request: HttpRequest) -> HttpResponse:
    """The last page: it knows nobody any more. It says how far the database's own files are written anew."""
    context = {"embedded": settings.DATABASE_EMBEDDED, "progress": rewriting.progress()}
    return render(request, "accounts/erased.html", context)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
