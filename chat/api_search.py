"""The REST API, continued: searching one's own conversations."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from chat import api_shapes as shapes
from chat.api import REFUSED, Endpoint
from chat.searching import search_own


class Search(Endpoint):
    """What was said before."""

    @extend_schema(
        parameters=[shapes.SearchQuery],
        responses={200: shapes.FoundShape, 400: shapes.ErrorShape, **REFUSED},
    )
    def get(self, request: Request) -> Response:
        """Messages that hold the words or are near in meaning, best first."""
        values = self.checked(shapes.SearchQuery, request.query_params)
        return Response(asdict(search_own(self.user, values["q"], values["channel"])))
