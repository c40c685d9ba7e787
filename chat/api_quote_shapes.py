"""The shapes of quotes in the REST API."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers


class QuoteShape(serializers.Serializer[dict[str, Any]]):
    """What a message quotes: where it leads, and no more."""

    kind = serializers.ChoiceField(choices=["message", "channel"])
    channel = serializers.CharField(help_text="The conversation it is from.")
    message_id = serializers.IntegerField(required=False, help_text="Of a quoted message.")
    title = serializers.CharField(help_text="As it was when it was quoted; blank: it had none.")


@extend_schema_field(
    {
        "type": "object",
        "properties": {
            "kind": {"enum": ["message", "channel"]},
            "channel": {"type": "string"},
            "message_id": {"type": "integer", "description": "With the kind message, and only with it."},
        },
        "required": ["kind", "channel"],
    }
)
class Pointer(serializers.JSONField):
    """What a client says of a quote. It is judged where every quote is."""


class JudgedLater(serializers.Field[Any, Any, Any, Any]):
    """Whatever a client said, as it said it: what counts is judged where every quote is, and refused in its words."""

    def to_internal_value(self, data: Any) -> Any:
        return data


@extend_schema_field(OpenApiTypes.BOOL)
class Confirmed(JudgedLater):
    """Nothing but true itself confirms: not what reads like it, nor a form's word for it."""


@extend_schema_field(OpenApiTypes.STR)
class ConfirmText(JudgedLater):
    """The sentence that was confirmed."""


class PreviewRequest(serializers.Serializer[dict[str, Any]]):
    """Which quote, for which conversation."""

    quote = Pointer()
    target = serializers.CharField(
        max_length=200, allow_blank=True, help_text="Channel of the conversation to quote in; blank: of a new one."
    )
    scope = serializers.ChoiceField(choices=["open", "isolated"], required=False, help_text="Of the new conversation.")
    category = serializers.CharField(
        required=False, allow_blank=True, max_length=40, help_text="Of the new conversation."
    )


class PreviewShape(serializers.Serializer[dict[str, Any]]):
    """What sending the quote asks for."""

    quote = QuoteShape()
    needs_confirm = serializers.BooleanField()
    confirm_text = serializers.CharField(help_text="The sentence to confirm; blank when there is nothing to confirm.")
