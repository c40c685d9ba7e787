"""The REST API, continued: what quoting would ask for, before anything is sent."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.exceptions import ParseError, UnsupportedMediaType, ValidationError
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from chat import api_quote_shapes as shapes
from chat.api import REFUSED, Endpoint
from chat.api_shapes import ErrorShape
from quotes import ingress


class QuotePreview(Endpoint):
    """Looking at a quote before it is given."""

    parser_classes = [JSONParser]

    @extend_schema(
        request=shapes.PreviewRequest,
        responses={200: shapes.PreviewShape, 400: ErrorShape, 413: ErrorShape, 415: ErrorShape, **REFUSED},
    )
    def post(self, request: Request) -> Response:
        """The card of a quote, and what sending it there asks to confirm. Grants nothing: sending looks again."""
        values = self.checked(shapes.PreviewRequest, request.data)
        new = {name: values[name] for name in ("scope", "category") if name in values}
        return Response(ingress.preview(self.user, values["target"], values["quote"], **new))

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, ParseError | RecursionError):
            return _bad_request(_("The body is not JSON."))
        if isinstance(exc, UnsupportedMediaType):
            return _bad_request(_("The body has to be JSON."), status.HTTP_415_UNSUPPORTED_MEDIA_TYPE)
        if isinstance(exc, ValidationError):
            return _bad_request(_("Say which quote (an object) and its target (the channel of a conversation)."))
        return super().handle_exception(exc)


def _bad_request(reason: str, code: int = status.HTTP_400_BAD_REQUEST) -> Response:
    body: dict[str, Any] = {"code": "bad-quote", "reason": reason}
    return Response(body, status=code)
