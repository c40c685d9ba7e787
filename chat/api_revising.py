"""The REST API, continued: going back in a conversation, and what is done to a whole one. The page uses it too."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from agent import conversations as whole
from agent import renewal, revising
from agent.projection import item_view, thread_view
from chat import api_shapes as shapes
from chat import conversations
from chat.api import REFUSED, Endpoint
from threads.access import access_thread


class MessageEdit(Endpoint):
    """Other words in place of one's own."""

    @extend_schema(request=shapes.NewMessage, responses={202: shapes.ItemShape, 413: shapes.ErrorShape, **REFUSED})
    def post(self, request: Request, channel: str, message: int) -> Response:
        """Go back to before this message and say these words instead. What followed stays readable, as rewound."""
        access_thread(self.user, channel)
        values = self.checked(shapes.NewMessage, request.data)
        item = revising.edit(self.user, channel, message, values["text"], client_key=values["key"])
        return Response(item_view(item), status=status.HTTP_202_ACCEPTED)


class ThreadRetry(Endpoint):
    """Another answer to the same words."""

    @extend_schema(request=shapes.Key, responses={202: shapes.ItemShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Ask the last words once more. What was answered stays readable, as rewound."""
        access_thread(self.user, channel)
        item = revising.retry(self.user, channel, client_key=self.checked(shapes.Key, request.data)["key"])
        return Response(item_view(item), status=status.HTTP_202_ACCEPTED)


class MessageRewind(Endpoint):
    """Going back."""

    @extend_schema(request=None, responses={200: shapes.ThreadShape, **REFUSED})
    def post(self, request: Request, channel: str, message: int) -> Response:
        """Make this message the last of the context. What followed stays readable, as rewound."""
        return Response(thread_view(revising.rewind(self.user, channel, message)))


class ThreadUndoRewind(Endpoint):
    """Taking a going back back."""

    @extend_schema(request=None, responses={200: shapes.ThreadShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Bring back what the newest rewind left behind. What was said since becomes rewound itself."""
        return Response(thread_view(revising.undo_rewind(self.user, channel)))


class MessageFork(Endpoint):
    """Branching off."""

    @extend_schema(request=None, responses={201: shapes.ThreadShape, **REFUSED})
    def post(self, request: Request, channel: str, message: int) -> Response:
        """A new conversation that begins with what the context held up to this message."""
        branch = conversations.fork_conversation(self.user, channel, message)
        return Response(thread_view(branch), status=status.HTTP_201_CREATED)


class QueuedItem(Endpoint):
    """Words that wait."""

    @extend_schema(responses={200: shapes.ItemShape, **REFUSED})
    def delete(self, request: Request, channel: str, item: int) -> Response:
        """Take them back: the answer holds their text."""
        return Response(item_view(revising.withdraw(self.user, channel, item)))


class ThreadUndelete(Endpoint):
    """Taking a deletion back."""

    @extend_schema(request=None, responses={200: shapes.ThreadShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Bring a conversation back that was deleted less than ten minutes ago."""
        return Response(thread_view(whole.undelete(self.user, channel)))


class ThreadModel(Endpoint):
    """Which model answers."""

    @extend_schema(request=shapes.ModelChoice, responses={200: shapes.ThreadShape, **REFUSED})
    def put(self, request: Request, channel: str) -> Response:
        """Let this model answer from the next request on; blank: the server's choice."""
        access_thread(self.user, channel)
        values = self.checked(shapes.ModelChoice, request.data)
        return Response(thread_view(whole.choose_model(self.user, channel, values["model"])))


class ThreadRenew(Endpoint):
    """A fresh context."""

    @extend_schema(request=None, responses={202: shapes.AcceptedShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Summarise what was said and go on with a fresh context."""
        renewal.request(self.user, channel)
        reason = _("The context is being renewed.")
        return Response({"code": "accepted", "reason": reason}, status=status.HTTP_202_ACCEPTED)
