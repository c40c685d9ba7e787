"""Pages in the user's own language and time zone."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation


class PreferencesMiddleware:
    """Activate the signed-in user's language and zone for the length of the request."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        user = request.user
        if not user.is_authenticated:
            return self.get_response(request)
        request.LANGUAGE_CODE = user.language
        with translation.override(user.language), timezone.override(user.zone):
            return self.get_response(request)
