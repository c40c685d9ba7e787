"""The REST API, continued: where the content of a conversation may go."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agent.projection import thread_view
from chat import api_shapes as shapes
from chat import conversations
from chat.api import NOT_FOUND, REFUSED, Endpoint
from chat.levels import level_view
from threads.access import access_thread


class ThreadLevel(Endpoint):
    """Scope and category."""

    @extend_schema(responses={200: shapes.LevelShape, **NOT_FOUND})
    def get(self, request: Request, channel: str) -> Response:
        """The level, and what making it stricter means."""
        return Response(level_view(access_thread(self.user, channel)))

    @extend_schema(request=shapes.Level, responses={200: shapes.ThreadShape, **REFUSED})
    def put(self, request: Request, channel: str) -> Response:
        """Make it stricter: isolated, or of a category. It never becomes less strict."""
        access_thread(self.user, channel)
        values = self.checked(shapes.Level, request.data)
        thread = conversations.narrow_conversation(
            self.user, channel, scope=values.get("scope"), category=values.get("category")
        )
        return Response(thread_view(thread))
