"""Which rows of a conversation still stand after rewinds, and which evidence and which facts with them."""

from typing import Any

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce
from django.db.models.lookups import IsNull

from memory.models import Fact, FactEvidence
from threads.models import Message, Thread
from threads.search_range import FROM_PEOPLE_AND_TOOLS

# A list, because a comparison of each conversation is taken for a rare one where the database has counted none of them
# (it counts no table of a few rows), and all facts are compared with all evidence.
_GONE = Thread.objects.filter(deleted__isnull=False).values("pk")
_DELETED = Q(message__thread__in=_GONE) | Q(generation__thread__in=_GONE)


# When a piece of evidence was complete: an acceptance comes after what it accepts.
GIVEN = Coalesce("accepted_by__created", "message__created", "generation__ended")


def when_said(evidence: QuerySet[Any]) -> Subquery:
    """When the words of some evidence, or its outcome, were last said or seen; null where there is none."""
    newest = evidence.order_by().annotate(given=GIVEN).order_by(F("given").desc(nulls_last=True))
    return Subquery(newest.values("given")[:1])


def with_said(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """The facts with `said`, the moment whose day is shown with them: when the words that prove a fact were last said;
    of one that somebody put right by hand, and of one without evidence, when it was written."""
    proved = when_said(FactEvidence.objects.filter(fact_id=OuterRef("pk")))
    written = F("created")
    return facts.annotate(
        said=Case(When(writer__in=Fact.BY_HAND, then=written), default=Coalesce(proved, written)),
    )


def standing_rows(**within: Any) -> QuerySet[Message]:
    """Rows that can prove something, of a conversation or a generation: not rewound, or with a copy in the same
    conversation that is not."""
    copies = Message.objects.filter(copied_from_id=OuterRef("pk"), thread_id=OuterRef("thread_id"))
    stands = ~Q(left_because=Message.LeftBecause.SUPERSEDED) | Exists(
        copies.exclude(left_because=Message.LeftBecause.SUPERSEDED)
    )
    return Message.objects.filter(FROM_PEOPLE_AND_TOOLS, stands, model_visible=True, wire__isnull=False, **within)


def own_rows(**within: Any) -> QuerySet[Message]:
    """Those of them that are a conversation's own: what it copied from another one proves something there alone. A copy
    within a conversation is as own as what it was copied from."""
    own = Q(copied_from__isnull=True) | Q(copied_from__thread_id=F("thread_id"), copied_from__copied_from__isnull=True)
    return standing_rows(**within).filter(own)


def standing_evidence() -> QuerySet[FactEvidence]:
    """Evidence that still proves something: its words were not rewound, or a copy of them in the same conversation
    stands (as `cited_rows` has it), something of its generation's own stands, and its conversation is in sight."""
    return FactEvidence.objects.filter(
        ~_DELETED & ~_rewound("message_id", "message") & ~_rewound("accepted_by_id", "accepted_by")
    ).filter(Q(generation__isnull=True) | Exists(own_rows(generation=OuterRef("generation_id"))))


def in_sight(facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """Those of some facts that do not rest on deleted conversations alone, which may come back, and their facts with
    them."""
    of_fact = FactEvidence.objects.filter(fact_id=OuterRef("pk"))
    # Each by itself, so that it is looked for from the few deleted conversations, and what is left for those facts
    # alone: neither goes through all the evidence there is.
    message_is_gone = Exists(of_fact.filter(message__thread__deleted__isnull=False))
    generation_is_gone = Exists(of_fact.filter(generation__thread__deleted__isnull=False))
    left = Subquery(of_fact.exclude(_DELETED).values("pk")[:1])
    return facts.exclude((message_is_gone | generation_is_gone) & Q(IsNull(left, True)))


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
