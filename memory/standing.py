"""Which rows of a conversation still stand after rewinds, whose words they are, which answers which; and which evidence
and which facts stand with them."""

from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from memory.models import Fact, FactEvidence
from memory.own_words import own_words
from threads.models import Message
from threads.search_range import FROM_PEOPLE_AND_TOOLS

_DELETED = Q(message__thread__deleted__isnull=False) | Q(generation__thread__deleted__isnull=False)


def standing_rows(**within: Any) -> QuerySet[Message]:
    """Rows that can prove something, of a conversation or a generation: not rewound, or with a copy in the same
    conversation that is not."""
    copies = Message.objects.filter(copied_from_id=OuterRef("pk"), thread_id=OuterRef("thread_id"))
    stands = ~Q(left_because=Message.LeftBecause.SUPERSEDED) | Exists(
        copies.exclude(left_because=Message.LeftBecause.SUPERSEDED)
    )
    return Message.objects.filter(FROM_PEOPLE_AND_TOOLS, stands, model_visible=True, wire__isnull=False, **within)


def stands(message: Message) -> bool:
    """A rewound row counts as live while a copy of it in its conversation was not rewound itself (it may have gone
    cold since: that takes nothing back)."""
    if message.left_because != Message.LeftBecause.SUPERSEDED:
        return True
    copies = Message.objects.filter(copied_from_id=message.pk, thread_id=message.thread_id)
    return copies.exclude(left_because=Message.LeftBecause.SUPERSEDED).exists()


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


def standing_evidence() -> QuerySet[FactEvidence]:
    """Evidence that still proves something: its words were not rewound, or a copy of them in the same conversation
    stands (`stands` in a query), something of its generation stands, and its conversation is in sight."""
    return FactEvidence.objects.filter(
        ~_DELETED & ~_rewound("message_id", "message") & ~_rewound("accepted_by_id", "accepted_by")
    ).filter(Q(generation__isnull=True) | Exists(standing_rows(generation=OuterRef("generation_id"))))


def in_sight(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """Those of some facts that do not rest on deleted conversations alone, which may come back, and their facts with
    them."""
    of_fact = FactEvidence.objects.filter(fact_id=OuterRef("pk"))
    return facts.exclude(Exists(of_fact.filter(_DELETED)) & ~Exists(of_fact.exclude(_DELETED)))


def stale_facts(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """Those of some facts that rest on rewound words alone, or on a conversation that was deleted and may come back.
    One imported without evidence is not stale for that."""
    return facts.exclude(Exists(standing_evidence().filter(fact_id=OuterRef("pk")))).exclude(
        Q(legacy=True) & ~Exists(FactEvidence.objects.filter(fact_id=OuterRef("pk")))
    )


def fresh_facts(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """Those of some facts that are not stale."""
    return facts.filter(
        Exists(standing_evidence().filter(fact_id=OuterRef("pk")))
        | (Q(legacy=True) & ~Exists(FactEvidence.objects.filter(fact_id=OuterRef("pk"))))
    )


def is_stale(fact: Fact) -> bool:
    """Whether nothing stands any more on which a fact rests: it is shown as such, and briefs nobody."""
    return stale_facts(Fact.objects.filter(pk=fact.pk)).exists()


def _rewound(column: str, path: str) -> Q:
    copies = Message.objects.filter(copied_from_id=OuterRef(column), thread_id=OuterRef(f"{path}__thread_id")).exclude(
        left_because=Message.LeftBecause.SUPERSEDED
    )
    # A null row (a generation, or nothing to accept) was not rewound: `coalesce` of the comparison.
    return Q(**{f"{column}__isnull": False, f"{path}__left_because": Message.LeftBecause.SUPERSEDED}) & ~Q(
        Exists(copies)
    )
