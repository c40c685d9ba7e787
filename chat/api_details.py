"""The REST API, continued: what is read when somebody asks for it, and is too large or too rare for a snapshot."""

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agent.meter import meter_view, model_choices
from agent.refusals import Refused
from chat import api_shapes as shapes
from chat.api import NOT_FOUND, Endpoint
from threads.access import NoSuchMessage, access_message, access_thread
from threads.models import Generation, Message


class ThreadMeter(Endpoint):
    """How full the context is, and what the conversation has cost."""

    @extend_schema(responses={200: shapes.MeterShape, **NOT_FOUND})
    def get(self, request: Request, channel: str) -> Response:
        """As the last request had it, and the models that may be picked."""
        thread = access_thread(self.user, channel)
        return Response({**meter_view(thread), "choices": model_choices(thread.category)})


class MessageText(Endpoint):
    """The whole text of one message."""

    @extend_schema(operation_id="messages_text", responses={200: shapes.TextShape, **NOT_FOUND})
    def get(self, request: Request, channel: str, message: int) -> Response:
        """All of it, where a view holds its beginning: the result of a tool call by its `message_id`."""
        thread = access_thread(self.user, channel)
        try:
            row = access_message(self.user, message)
        except NoSuchMessage:
            row = None
        if row is None or row.thread_id != thread.pk or _is_for_models_alone(row):
            raise Refused("no-such-message", _("There is no such message in this conversation."))
        return Response({"id": row.pk, "role": row.role, "text": row.text, "is_error": row.is_error})


class GenerationSummary(Endpoint):
    """What a context was summarised to."""

    @extend_schema(responses={200: shapes.SummaryShape, **NOT_FOUND})
    def get(self, request: Request, channel: str, ordinal: int) -> Response:
        """The summary with which the generation of this number ended; blank when it ended without one."""
        thread = access_thread(self.user, channel)
        row = Generation.objects.filter(thread=thread, owner_id=thread.owner_id, ordinal=ordinal).first()
        if row is None:
            raise Refused("no-such-generation", _("This conversation has no such generation."))
        return Response(
            {
                "ordinal": row.ordinal,
                "summary": row.summary,
                "reason": row.end_reason,
                "started": row.started.isoformat(),
                "ended": row.ended.isoformat() if row.ended else None,
            }
        )


def _is_for_models_alone(row: Message) -> bool:
    return row.role == Message.Role.EVENT and not row.meta.get("notice")
