"""The shapes of the REST API: what comes in is checked here, what goes out is described for the schema."""

from typing import Any

from rest_framework import serializers

from chat.api_quote_shapes import Confirmed, ConfirmText, Pointer, QuoteShape
from maxclaw.text import visible


class Words(serializers.CharField):
    """Words as they come: a NUL or a lone surrogate is made visible rather than refused, as everywhere."""

    def to_internal_value(self, data: Any) -> str:
        return str(super().to_internal_value(visible(data) if isinstance(data, str) else data))


class ThreadShape(serializers.Serializer[dict[str, Any]]):
    """One conversation."""

    channel = serializers.CharField(help_text="Its name in every address.")
    title = serializers.CharField()
    kind = serializers.ChoiceField(choices=["main", "web", "task"])
    status = serializers.ChoiceField(choices=["active", "archived", "ended"])
    scope = serializers.ChoiceField(choices=["open", "isolated"])
    category = serializers.CharField()
    state = serializers.ChoiceField(choices=["idle", "running", "waiting"])
    model = serializers.CharField(help_text="The model that the user picked; blank: the server's choice.")
    updated = serializers.DateTimeField()
    erased = serializers.DateTimeField(
        required=False, help_text="Of a deleted one in a list: from when on it cannot be brought back."
    )


class TurnShape(serializers.Serializer[dict[str, Any]]):
    """The turn that is under way."""

    frame = serializers.IntegerField()
    state = serializers.ChoiceField(choices=["running", "waiting", "suspended"])
    level = serializers.IntegerField(min_value=0, max_value=4)


class LeftOutShape(serializers.Serializer[dict[str, Any]]):
    """How much more a search had found than it gave."""

    count = serializers.IntegerField()
    exact = serializers.BooleanField(help_text="False: at least so much.")


class ResultShape(serializers.Serializer[dict[str, Any]]):
    """The result of a tool call, its beginning."""

    message_id = serializers.IntegerField()
    text = serializers.CharField(help_text="At most 4,000 characters.")
    chars = serializers.IntegerField(help_text="Length of the whole result.")
    is_error = serializers.BooleanField()
    left_out = LeftOutShape(allow_null=True, help_text="Null for what is no search.")


class TextShape(serializers.Serializer[dict[str, Any]]):
    """The whole text of one message."""

    id = serializers.IntegerField()
    role = serializers.ChoiceField(choices=["user", "assistant", "tool", "event"])
    text = serializers.CharField()
    is_error = serializers.BooleanField()


class SummaryShape(serializers.Serializer[dict[str, Any]]):
    """How a generation of a conversation ended."""

    ordinal = serializers.IntegerField()
    summary = serializers.CharField()
    reason = serializers.CharField()
    started = serializers.DateTimeField()
    ended = serializers.DateTimeField(allow_null=True)


class MeterShape(serializers.Serializer[dict[str, Any]]):
    """How full the context is, and what the conversation has cost."""

    model = serializers.CharField(help_text="The model of the last request, or the one that would answer.")
    budget = serializers.IntegerField(allow_null=True, help_text="Tokens that a context of this model may hold.")
    live_tokens = serializers.IntegerField(allow_null=True, help_text="Null before the first request.")
    cache_read_share = serializers.FloatField(
        allow_null=True, help_text="Of the last request, 0 to 1; null where its server does not say."
    )
    cost = serializers.CharField(help_text="List price of all calls in dollars, as far as it is known.")
    cost_unknown = serializers.IntegerField(help_text="Calls without a price: the sum is then a lower bound.")
    choices = serializers.ListField(child=serializers.CharField(), help_text="Models that may be picked.")


class ToolCallShape(serializers.Serializer[dict[str, Any]]):
    """One tool call of an answer."""

    id = serializers.IntegerField()
    tool = serializers.CharField()
    arguments = serializers.JSONField()
    status = serializers.ChoiceField(
        choices=["pending", "running", "waiting", "done", "failed", "refused", "interrupted"]
    )
    result = ResultShape(allow_null=True)
    started = serializers.DateTimeField(allow_null=True)
    duration_ms = serializers.IntegerField(allow_null=True)


class FoldShape(serializers.Serializer[dict[str, Any]]):
    """A stretch of messages that were taken out of the conversation."""

    first = serializers.IntegerField(help_text="Id of its first message.")
    last = serializers.IntegerField(help_text="Id of its last message.")
    count = serializers.IntegerField(help_text="How many messages it has; a snapshot holds the newest of them.")


class MessageShape(serializers.Serializer[dict[str, Any]]):
    """One message."""

    id = serializers.IntegerField()
    role = serializers.ChoiceField(choices=["user", "assistant", "event"])
    text = serializers.CharField()
    html = serializers.CharField(required=False, help_text="The sanitised Markdown of an answer that has ended.")
    thinking = serializers.CharField()
    state = serializers.ChoiceField(choices=["streaming", "complete", "interrupted"])
    created = serializers.DateTimeField()
    generation = serializers.IntegerField()
    superseded = serializers.BooleanField()
    fold = FoldShape(allow_null=True, help_text="In a snapshot, what a message that was taken out is folded into.")
    notice = serializers.BooleanField()
    code = serializers.CharField(help_text="Which notice it is; blank for what is none.")
    quote = QuoteShape(allow_null=True)
    tool_calls = ToolCallShape(many=True)


class ItemShape(serializers.Serializer[dict[str, Any]]):
    """Words that wait for the conversation's next safe point, or were taken into it."""

    id = serializers.IntegerField()
    key = serializers.CharField()
    text = serializers.CharField()
    quote = QuoteShape(allow_null=True)
    created = serializers.DateTimeField()


class ThreadListShape(serializers.Serializer[dict[str, Any]]):
    """A page of conversations, newest first."""

    threads = ThreadShape(many=True)
    has_more = serializers.BooleanField()


class SnapshotShape(serializers.Serializer[dict[str, Any]]):
    """A conversation as it is now."""

    thread = ThreadShape()
    turn = TurnShape(allow_null=True)
    messages = MessageShape(many=True)
    has_earlier = serializers.BooleanField()
    queued = ItemShape(many=True)
    rewound = serializers.IntegerField(
        allow_null=True, help_text="Last message before the newest rewind that can be undone; null: there is none."
    )
    event = serializers.IntegerField(help_text="Number of the last event that is in it.")


class MessagePageShape(serializers.Serializer[dict[str, Any]]):
    """A page of messages, ascending."""

    messages = MessageShape(many=True)
    has_earlier = serializers.BooleanField()


class ErrorShape(serializers.Serializer[dict[str, Any]]):
    """What was refused, and what to change."""

    code = serializers.CharField()
    reason = serializers.CharField()
    problems = serializers.DictField(
        child=serializers.CharField(),
        required=False,
        help_text="Of input (`bad-input`): what is wrong with each field.",
    )


class ListQuery(serializers.Serializer[dict[str, Any]]):
    """What to list."""

    search = Words(required=False, allow_blank=True, max_length=200, help_text="Looked for in titles.")
    before = serializers.CharField(
        required=False, max_length=20, help_text="Channel of the last conversation of the page before."
    )
    status = serializers.ChoiceField(required=False, choices=["active", "archived", "ended", "deleted"])
    limit = serializers.IntegerField(required=False, min_value=1, max_value=200)


class MessagesQuery(serializers.Serializer[dict[str, Any]]):
    """Which page of messages."""

    before = serializers.IntegerField(
        required=False, min_value=1, max_value=2**63 - 1, help_text="Only messages older than this id."
    )


class NewThread(serializers.Serializer[dict[str, Any]]):
    """A new conversation."""

    title = Words(required=False, allow_blank=True, max_length=200, default="")
    scope = serializers.ChoiceField(required=False, choices=["open", "isolated"], default="open")
    category = serializers.CharField(required=False, allow_blank=True, max_length=40, default="")
    model = serializers.CharField(
        required=False, allow_blank=True, max_length=100, default="", help_text="Blank: the server's choice."
    )


class Level(serializers.Serializer[dict[str, Any]]):
    """Where the content of a conversation may go. What is left out stays as it is."""

    scope = serializers.ChoiceField(required=False, choices=["open", "isolated"])
    category = serializers.CharField(required=False, allow_blank=True, max_length=40)


class LevelShape(serializers.Serializer[dict[str, Any]]):
    """The level of a conversation, and what making it stricter means."""

    scope = serializers.ChoiceField(choices=["open", "isolated"])
    category = serializers.CharField()
    may_isolate = serializers.BooleanField()
    categories = serializers.ListField(child=serializers.CharField(), help_text="That it may be put into now.")
    isolating = serializers.ListField(child=serializers.CharField(), help_text="What isolating it means.")
    labelling = serializers.DictField(
        child=serializers.ListField(child=serializers.CharField()), help_text="What each category means."
    )
    common = serializers.ListField(child=serializers.CharField(), help_text="What holds for either.")


class Rename(serializers.Serializer[dict[str, Any]]):
    """Another title."""

    title = Words(max_length=200)


KEY_HELP = "Sending again with the same key is the same send: printable ASCII."


class Key(serializers.Serializer[dict[str, Any]]):
    """What makes a repeated request the same one."""

    key = serializers.RegexField(r"^[!-~]{1,100}$", help_text=KEY_HELP)


class ModelChoice(serializers.Serializer[dict[str, Any]]):
    """Which model answers."""

    model = serializers.CharField(allow_blank=True, max_length=100, help_text="Blank: the server's choice.")


class AcceptedShape(serializers.Serializer[dict[str, Any]]):
    """What will be done."""

    code = serializers.CharField()
    reason = serializers.CharField()


class NewMessage(serializers.Serializer[dict[str, Any]]):
    """Words for the conversation. Its length is judged where every message's is."""

    text = Words(trim_whitespace=False, allow_blank=True)
    key = serializers.RegexField(r"^[!-~]{1,100}$", help_text=KEY_HELP)


class QuotingMessage(NewMessage):
    """Words for the conversation, and what they quote."""

    quote = Pointer(required=False, allow_null=True, help_text="A message or a conversation to quote.")
    confirmed = Confirmed(
        required=False,
        allow_null=True,
        help_text="Whether the person confirmed `confirm_text`: true, and nothing else.",
    )
    confirm_text = ConfirmText(
        required=False,
        allow_null=True,
        help_text="The sentence that the preview asked to confirm, as the person saw it.",
    )


class StopRequest(serializers.Serializer[dict[str, Any]]):
    """Which turn to stop."""

    frame = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class AnswerRequest(serializers.Serializer[dict[str, Any]]):
    """The answer to a question card."""

    call = serializers.IntegerField(min_value=1, max_value=2**63 - 1)
    text = Words(trim_whitespace=False, allow_blank=True)


class SearchQuery(serializers.Serializer[dict[str, Any]]):
    """What to search for, and where."""

    q = Words(required=False, allow_blank=True, default="", help_text="Words, a name, a quotation or a question.")
    channel = Words(
        required=False,
        allow_blank=True,
        default="",
        help_text="The conversation to search; blank: all that are open and have no category.",
    )


class HitShape(serializers.Serializer[dict[str, Any]]):
    """A message that was found."""

    channel = serializers.CharField()
    title = serializers.CharField()
    message_id = serializers.IntegerField()
    role = serializers.ChoiceField(choices=["user", "assistant", "tool result", "event"])
    created = serializers.DateTimeField()
    excerpt = serializers.CharField()


class FoundShape(serializers.Serializer[dict[str, Any]]):
    """What a search found, best first."""

    hits = HitShape(many=True)
    left_out = serializers.IntegerField(help_text="How many finds are not among the hits.")
    exact = serializers.BooleanField(help_text="False: at least so many are left out.")
