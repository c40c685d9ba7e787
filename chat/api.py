"""The REST API: the same entry points as the page's socket, for programs. Every error is {"code", "reason"}:
`chat/api_errors.py` puts the framework's own into that shape."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from agent import conversations as whole
from agent.projection import item_view, thread_view
from agent.questions import answer_question
from agent.refusals import Refused
from agent.stopping import stop
from chat import api_shapes as shapes
from chat import api_stream, conversations
from chat.presentation import present_messages
from chat.replay import all_messages
from chat.snapshot import snapshot
from quotes import ingress
from threads.access import NoSuchThread, access_thread
from threads.lifecycle import LifecycleRefused
from threads.models import Thread

NOT_FOUND = {404: shapes.ErrorShape}
REFUSED = {**NOT_FOUND, 409: shapes.ErrorShape}
# Everything else that is refused is a conflict with how the conversation stands.
STATUS_OF_CODE = {
    "no-such-thread": status.HTTP_404_NOT_FOUND,
    "no-such-message": status.HTTP_404_NOT_FOUND,
    "no-such-generation": status.HTTP_404_NOT_FOUND,
    "no-such-source": status.HTTP_404_NOT_FOUND,
    "no-such-fact": status.HTTP_404_NOT_FOUND,
    "bad-fact": status.HTTP_400_BAD_REQUEST,
    "bad-quote": status.HTTP_400_BAD_REQUEST,
    "empty": status.HTTP_400_BAD_REQUEST,
    "bad-query": status.HTTP_400_BAD_REQUEST,
    "bad-key": status.HTTP_400_BAD_REQUEST,
    "too-long": status.HTTP_413_REQUEST_ENTITY_TOO_LARGE,
}


class Endpoint(APIView):
    """What every endpoint has: the signed-in user, checked input, and refusals as answers."""

    @property
    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def checked(self, shape: Callable[..., Any], data: Any) -> dict[str, Any]:
        """The input in this shape; a 400 that names the fields otherwise."""
        serializer = shape(data=data)
        serializer.is_valid(raise_exception=True)
        values: dict[str, Any] = serializer.validated_data
        return values

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, NoSuchThread | Thread.DoesNotExist):
            return error("no-such-thread", _("There is no such conversation. It may have been deleted."))
        if isinstance(exc, Refused):
            return error(exc.code, exc.sentence)
        if isinstance(exc, LifecycleRefused):
            return error("refused", str(exc))
        if isinstance(exc, RecursionError):  # a body of brackets within brackets
            exc = ParseError()
        return super().handle_exception(exc)


def error(code: str, reason: str) -> Response:
    """A refusal as an answer."""
    return Response({"code": code, "reason": reason}, status=STATUS_OF_CODE.get(code, status.HTTP_409_CONFLICT))


class ThreadList(Endpoint):
    """One's conversations."""

    @extend_schema(
        operation_id="threads_list",
        parameters=[shapes.ListQuery],
        responses={200: shapes.ThreadListShape, **NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """Conversations, newest first."""
        query = self.checked(shapes.ListQuery, request.query_params)
        return Response(conversations.conversations(self.user, **query))

    @extend_schema(request=shapes.NewThread, responses={201: shapes.ThreadShape, 409: shapes.ErrorShape})
    def post(self, request: Request) -> Response:
        """A new conversation."""
        values = self.checked(shapes.NewThread, request.data)
        thread = conversations.create_conversation(self.user, **values)
        return Response(thread_view(thread), status=status.HTTP_201_CREATED)


class ThreadDetail(Endpoint):
    """One conversation."""

    @extend_schema(responses={200: shapes.SnapshotShape, **NOT_FOUND})
    def get(self, request: Request, channel: str) -> Response:
        """The conversation as it is now, with its newest messages."""
        state = snapshot(access_thread(self.user, channel))
        return Response({**state, "messages": present_messages(state["messages"])})

    @extend_schema(request=shapes.Rename, responses={200: shapes.ThreadShape, **REFUSED})
    def patch(self, request: Request, channel: str) -> Response:
        """Give it another title."""
        access_thread(self.user, channel)
        values = self.checked(shapes.Rename, request.data)
        return Response(thread_view(conversations.rename_conversation(self.user, channel, values["title"])))

    @extend_schema(responses={200: shapes.ThreadShape, **REFUSED})
    def delete(self, request: Request, channel: str) -> Response:
        """Delete it: out of sight at once, and for ten minutes it can be taken back (`undelete`)."""
        return Response(thread_view(whole.delete(self.user, channel)))


class ThreadArchive(Endpoint):
    """Putting a conversation away."""

    @extend_schema(request=None, responses={200: shapes.ThreadShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Archive it: it stays readable."""
        return Response(thread_view(conversations.archive_conversation(self.user, channel)))


class ThreadUnarchive(Endpoint):
    """Taking a conversation back."""

    @extend_schema(request=None, responses={200: shapes.ThreadShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Bring it back from the archive."""
        return Response(thread_view(conversations.unarchive_conversation(self.user, channel)))


class MessageList(Endpoint):
    """The messages of a conversation."""

    @extend_schema(
        operation_id="messages_list",
        parameters=[shapes.MessagesQuery],
        responses={200: shapes.MessagePageShape, **NOT_FOUND},
    )
    def get(self, request: Request, channel: str) -> Response:
        """A page of messages, the newest without `before`."""
        access_thread(self.user, channel)
        query = self.checked(shapes.MessagesQuery, request.query_params)
        return Response(all_messages(self.user, channel, query.get("before")))

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """Refusals of a send that asked for a stream are events too."""
        if request.method == "POST" and api_stream.wants_stream(request):
            return api_stream.EventStream(), api_stream.MEDIA_TYPE
        return super().perform_content_negotiation(request, force)

    @extend_schema(
        request=shapes.QuotingMessage,
        responses={
            (200, api_stream.MEDIA_TYPE): OpenApiResponse(
                OpenApiTypes.STR,
                description="With `Accept: text/event-stream`: `accepted` with the words, then the conversation's "
                "events as they come, each with its number as `id`, and `end` with the turn or where it waits for an "
                "answer of yours. A refusal is one event `error`, with its own status.",
            ),
            202: shapes.ItemShape,
            413: shapes.ErrorShape,
            **REFUSED,
        },
    )
    def post(self, request: Request, channel: str) -> HttpResponseBase:
        """Send words, with what they quote; the answer arrives in the conversation, or here as server-sent events."""
        after = api_stream.before_sending(self.user, channel)
        values = self.checked(shapes.QuotingMessage, request.data)
        item = ingress.send(
            self.user,
            channel,
            values["text"],
            client_key=values["key"],
            quote=values.get("quote"),
            confirmed=values.get("confirmed"),
            confirm_text=values.get("confirm_text"),
        )
        if api_stream.wants_stream(request):
            return api_stream.answer(request, self.user, channel, item, after)
        return Response(item_view(item), status=status.HTTP_202_ACCEPTED)


class ThreadStop(Endpoint):
    """Stopping a turn."""

    @extend_schema(request=shapes.StopRequest, responses={204: None, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Stop the turn that is named."""
        access_thread(self.user, channel)
        stop(self.user, channel, self.checked(shapes.StopRequest, request.data)["frame"])
        return Response(status=status.HTTP_204_NO_CONTENT)


class ThreadAnswer(Endpoint):
    """Answering a question card."""

    @extend_schema(request=shapes.AnswerRequest, responses={204: None, 413: shapes.ErrorShape, **REFUSED})
    def post(self, request: Request, channel: str) -> Response:
        """Answer the question; the turn goes on."""
        access_thread(self.user, channel)
        values = self.checked(shapes.AnswerRequest, request.data)
        answer_question(self.user, channel, values["call"], values["text"])
        return Response(status=status.HTTP_204_NO_CONTENT)
