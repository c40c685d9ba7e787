"""Which rows of a conversation still stand after rewinds, whose words they are, and which answers which."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from memory.assent import own_words
from threads.models import Message
from threads.search_range import FROM_PEOPLE_AND_TOOLS


def standing_rows(**within: Any) -> QuerySet[Message]:
    """Rows that can prove something, of a conversation or a generation: not rewound, or with a copy in the same
    conversation that is not."""
    copies = Message.objects.filter(copied_from_id=OuterRef("pk"), thread_id=OuterRef("thread_id"))
    stands = ~Q(left_because=Message.LeftBecause.SUPERSEDED) | Exists(
        copies.exclude(left_because=Message.LeftBecause.SUPERSEDED)
    )
    return Message.objects.filter(FROM_PEOPLE_AND_TOOLS, stands, model_visible=True, wire__isnull=False, **within)


def call_answered_by(message: Message) -> ToolCall | None:
    """The call whose result a row is."""
    return ToolCall.objects.filter(result=message, owner_id=message.owner_id).select_related("message").first()


def words_of_person(message: Message) -> str:
    """The person's words in a row, blank when it has none: a user row, or what answered a question card."""
    if message.role == Message.Role.USER:
        return own_words(message.text)
    if message.role == Message.Role.TOOL and not message.is_error:
        call = call_answered_by(message)
        if call is not None and call.tool == QUESTION_TOOL and call.status == ToolCall.Status.DONE:
            return own_words(message.text)
    return ""


def answers_it(conclusion: Message, answer: Message) -> bool:
    """Whether an answer is the first that the person said after a conclusion, which is the last that they had read:
    a later yes is one to something else. Both are of one conversation, and originals where it has them."""
    between = (
        standing_rows(thread_id=conclusion.thread_id, pk__gt=conclusion.pk, pk__lt=answer.pk)
        # A copy in the same conversation says nothing new.
        .filter(Q(copied_from__isnull=True) | ~Q(copied_from__thread_id=F("thread_id")))
        .order_by("pk")
    )
    if between.filter(role=Message.Role.ASSISTANT, text__regex=r"\S").exists():
        return False
    spoken = between.filter(role__in=[Message.Role.USER, Message.Role.TOOL]).defer("search_text")
    return not any(words_of_person(message) for message in spoken.iterator())
