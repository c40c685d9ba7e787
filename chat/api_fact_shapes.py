"""The shapes of the REST API's memory."""

from typing import Any

from rest_framework import serializers

from chat.api_shapes import Words
from memory.fact_drafts import APPLIES_TO_MAX_CHARS, TEXT_MAX_CHARS
from memory.models import Fact, FactEvidence
from memory.remembered import EARLIER, NOW, PAGE_FACTS, QUERY_MAX_CHARS, SORTS


class FactsQuery(serializers.Serializer[dict[str, Any]]):
    """Which facts."""

    q = Words(
        required=False, allow_blank=True, default="", max_length=QUERY_MAX_CHARS, help_text="Words that stand in it."
    )
    sort = serializers.ChoiceField(
        required=False,
        allow_blank=True,
        choices=SORTS,
        default="",
        help_text="A kind, or an aspect of what is about the person.",
    )
    shown = serializers.ChoiceField(
        required=False, choices=[NOW, EARLIER], default=NOW, help_text="What holds, or what was replaced or set aside."
    )
    before = serializers.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, help_text="Id of the last fact of the page before."
    )
    limit = serializers.IntegerField(required=False, min_value=1, max_value=100, default=PAGE_FACTS)


class ProofWordsShape(serializers.Serializer[dict[str, Any]]):
    """A message that proves something, and how it begins."""

    message_id = serializers.IntegerField()
    channel = serializers.CharField()
    title = serializers.CharField()
    in_main = serializers.BooleanField(help_text="Whether it stands in the main conversation.")
    role = serializers.CharField(help_text="user, assistant, tool or event.")
    excerpt = serializers.CharField()
    created = serializers.DateTimeField()


class ProofShape(serializers.Serializer[dict[str, Any]]):
    """One piece of evidence: words, or a whole generation of a conversation."""

    kind = serializers.ChoiceField(choices=FactEvidence.Kind.values)
    words = ProofWordsShape(allow_null=True)
    accepted = ProofWordsShape(allow_null=True, help_text="Where the person accepted what the words say.")
    channel = serializers.CharField(allow_null=True, help_text="The conversation of a whole generation.")
    ordinal = serializers.IntegerField(allow_null=True, help_text="Which of its generations.")


class FactShape(serializers.Serializer[dict[str, Any]]):
    """One thing that is remembered."""

    id = serializers.IntegerField()
    text = serializers.CharField()
    kind = serializers.ChoiceField(choices=Fact.Kind.values)
    aspect = serializers.ChoiceField(choices=Fact.Aspect.values, allow_blank=True)
    applies_to = serializers.CharField(help_text="Blank: in general.")
    tone = serializers.ChoiceField(choices=Fact.Tone.values)
    project = serializers.CharField()
    scope = serializers.ChoiceField(choices=["open", "isolated"])
    category = serializers.CharField()
    status = serializers.ChoiceField(choices=Fact.Status.values)
    superseded_by = serializers.IntegerField(allow_null=True)
    writer = serializers.ChoiceField(choices=Fact.Writer.values)
    created = serializers.DateTimeField()
    said = serializers.DateTimeField(help_text="When the words that prove it were last said.")
    evidence = ProofShape(many=True)


class FactPageShape(serializers.Serializer[dict[str, Any]]):
    """A page of facts, newest first."""

    facts = FactShape(many=True)
    next_before = serializers.IntegerField(allow_null=True, help_text="What leads to the next page; null at the end.")


class Correction(serializers.Serializer[dict[str, Any]]):
    """How a fact should read. What is left out stays as it is."""

    text = Words(required=False, max_length=TEXT_MAX_CHARS)
    applies_to = Words(required=False, allow_blank=True, max_length=APPLIES_TO_MAX_CHARS)
    tone = serializers.ChoiceField(required=False, choices=Fact.Tone.values)


class StaysShape(serializers.Serializer[dict[str, Any]]):
    """A place where words of a forgotten fact stay: a message, or a generation that was begun with them."""

    channel = serializers.CharField()
    title = serializers.CharField()
    in_main = serializers.BooleanField()
    message_id = serializers.IntegerField(allow_null=True)
    ordinal = serializers.IntegerField(allow_null=True)


class ForgottenShape(serializers.Serializer[dict[str, Any]]):
    """What stays of a fact that was forgotten."""

    versions = serializers.IntegerField(help_text="How many versions of it went.")
    stays = StaysShape(many=True)
    more = serializers.IntegerField(help_text="How many older places hold its words beside those in `stays`.")
