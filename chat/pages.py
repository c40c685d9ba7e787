"""The pages a person sees: sign-in, the chat page, the choice of language."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_POST, require_safe
from django.views.i18n import set_language

from accounts.models import User
from agent.meter import model_choices
from chat import levels
from chat.conversations import conversations
from chat.embedding import embeddable
from chat.frames import FRAME_MAX_BYTES
from chat.words import page_words
from llm.catalog import emulator_in_use
from threads.access import NoSuchThread, access_thread

LOCKED_OUT_STATUS = 429


class SignInForm(AuthenticationForm):
    """A name that is longer than any account's is answered as a wrong one, and asked for nowhere: Django shows the
    limit to browsers and checks it for nobody else, and the note of a failed attempt has no room for more."""

    def clean(self) -> dict[str, Any]:
        if len(self.cleaned_data.get("username") or "") > (self.username_field.max_length or 0):
            raise self.get_invalid_login_error()
        return super().clean()


class SignInView(LoginView):
    """The sign-in page. Someone signed in already goes on to their conversations."""

    authentication_form = SignInForm
    template_name = "chat/login.html"
    redirect_authenticated_user = True


def locked_out(
    request: HttpRequest, _response: HttpResponse | None = None, _credentials: dict[str, Any] | None = None
) -> HttpResponse:
    """Too many failed sign-ins (`accounts/throttling.py`): a pause, said on the sign-in page itself. Someone signed in
    who failed to prove it is told on a page of their account."""
    minutes = round(settings.AXES_COOLOFF_TIME * 60)
    sentence = _(
        "Too many failed attempts. Wait %(minutes)s minutes, then try again. "
        "If you have forgotten your password, ask whoever runs this server for a new one."
    ) % {"minutes": minutes}
    if request.user.is_authenticated:
        return render(request, "accounts/locked_out.html", {"locked_out": sentence}, status=LOCKED_OUT_STATUS)
    form = SignInForm(request)
    context = {"form": form, "next": request.POST.get("next", ""), "locked_out": sentence}
    return render(request, "chat/login.html", context, status=LOCKED_OUT_STATUS)


@require_safe
@embeddable
@never_cache
@ensure_csrf_cookie
@login_required
def chat_page(request: HttpRequest, channel: str = "") -> HttpResponse:
    """The page people live in, at a new conversation or at one of theirs.

    Another user's conversation and one that does not exist are the same 404.
    """
    user = request.user
    assert isinstance(user, User)
    if channel:
        try:
            access_thread(user, channel)
        except NoSuchThread:
            raise Http404 from None
    page = {
        "channel": channel,
        "person": str(user.pk),
        "home": reverse("chat"),
        "login": reverse("login"),
        "threads": conversations(user),
        "limit": settings.MESSAGE_MAX_CHARS,
        "frameLimit": FRAME_MAX_BYTES,
        "timeZone": user.time_zone,
        "language": get_language(),
        "categories": levels.categories(),
        "models": {name: model_choices(name) for name in ["", *(known["name"] for known in levels.categories())]},
        "isolating": " ".join(levels.isolating()),
        "embedOrigins": settings.EMBED_ORIGINS,
    }
    context = {"page": page, "words": page_words(), "emulator": emulator_in_use()}
    return render(request, "chat/chat.html", context)


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Django's choice by cookie; a signed-in user's is kept with the account, which wins over the cookie."""
    user = request.user
    language = request.POST.get("language")
    if isinstance(user, User) and language in dict(settings.LANGUAGES):
        user.language = language
        user.save(update_fields=["language"])
    return set_language(request)
