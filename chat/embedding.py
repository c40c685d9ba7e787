"""Embedding the chat page in a page of another origin: nobody's without a setting, and of that page nothing but the
messages of its bridge (`static/chat/embed.js`) is listened to."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from csp.decorators import csp_replace
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.clickjacking import xframe_options_exempt

View = Callable[..., HttpResponseBase]


def embeddable(view: View) -> View:
    """Let the pages of EMBED_ORIGINS show this one in a frame. Without any it stays as closed as every other."""

    @wraps(view)
    def framed(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.EMBED_ORIGINS:
            return view(request, *args, **kwargs)
        opened: View = csp_replace({"frame-ancestors": list(settings.EMBED_ORIGINS)})(xframe_options_exempt(view))
        return opened(request, *args, **kwargs)

    return framed
