"""The one shape of the REST API's errors, whoever raises them: {"code", "reason"}, and of input {"problems"} too."""

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import APIException, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler

BAD_INPUT = "bad-input"


def told(exc: Exception, context: dict[str, Any]) -> Response | None:
    """The framework's own answer to an exception, in the API's shape; None for what is nobody's mistake but ours.

    `code` is the framework's name of the error ("not-authenticated", "throttled", "parse-error"), for input that does
    not fit "bad-input"; `problems` then says for each field, by its dotted path, what is wrong with it.
    """
    if isinstance(exc, RequestDataTooBig):
        reason = _("The request is too large: at most %(limit)s bytes are taken. Shorten or split it.") % {
            "limit": f"{settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,}"
        }
        return Response({"code": "too-long", "reason": reason}, status=status.HTTP_413_REQUEST_ENTITY_TOO_LARGE)
    response = exception_handler(exc, context)
    if response is None:
        return None
    if isinstance(exc, ValidationError):
        fields = dict(_sentences(exc.detail))
        # A sentence about the whole has no field to name.
        reasons = [f"{name}: {said}" if name else said for name, said in fields.items()]
        named = {name: said for name, said in fields.items() if name}
        response.data = {"code": BAD_INPUT, "reason": " ".join(reasons), "problems": named}
    elif isinstance(exc, APIException):
        response.data = {"code": exc.default_code.replace("_", "-"), "reason": str(exc.detail)}
    else:  # Django's own Http404 and PermissionDenied
        code = {404: "not-found", 403: "permission-denied"}.get(response.status_code, "refused")
        response.data = {"code": code, "reason": str(response.data["detail"])}
    return response


def _sentences(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted path of a field, its sentences) of the framework's nested lists and dictionaries."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            here = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            yield from _sentences(inner, here)
    elif isinstance(detail, list) and not all(isinstance(inner, str) for inner in detail):
        for number, inner in enumerate(detail):
            yield from _sentences(inner, f"{path}.{number}" if path else str(number))
    else:
        yield path, " ".join(map(str, detail)) if isinstance(detail, list) else str(detail)
