"""What is cited as evidence, read at once: as many queries for the evidence of fifty facts as for that of one.

Ids are looked up among the owner's own rows, so that a foreign id is as unknown as an invented one. Within one
conversation a copy stands for its original.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from django.db.models import Exists, F, OuterRef, Q, Subquery

from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from memory import forgotten
from memory.claims import Claim
from memory.own_words import own_words
from memory.standing import own_rows, standing_rows
from threads.models import Generation, Message
from threads.search_range import FROM_PEOPLE_AND_TOOLS

# What nobody looks at here, and may be long.
_LONG = ("search_text", "wire")


@dataclass(frozen=True)
class CitedRows:
    """`messages` by the id that was cited, `calls` by the id of their result, `generations` by id. Sets of ids:
    `proving`, messages of people and tools that a model saw; `rewound`, messages and asking rows that stand no more;
    `standing_generations`, those of which something of their own stands; `forgotten_messages` and
    `forgotten_generations`, what was cited of that which taught a forgotten fact; `answers`, (conclusion, acceptance)
    where the second is the first that the person said after the first, which is the last that they had read: a later
    yes is one to something else."""

    messages: Mapping[int, Message] = field(default_factory=dict)
    calls: Mapping[int, ToolCall] = field(default_factory=dict)
    generations: Mapping[int, Generation] = field(default_factory=dict)
    proving: Set[int] = frozenset()
    rewound: Set[int] = frozenset()
    standing_generations: Set[int] = frozenset()
    forgotten_messages: Set[int] = frozenset()
    forgotten_generations: Set[int] = frozenset()
    answers: Set[tuple[int, int]] = frozenset()

    def words_of_person(self, message: Message) -> str:
        """The person's words in a row, blank when it has none: a user row, or what answered a question card."""
        return _words_of_person(message, self.calls)

    def is_forgotten(self, claim: Claim) -> bool:
        """Whether what a claim names taught a fact that was forgotten."""
        return claim.generation_id in self.forgotten_generations or not self.forgotten_messages.isdisjoint(
            claim.message_ids
        )


def read(owner_id: int, claims: Iterable[Claim]) -> CitedRows:
    """What the claims of one fact cite, or those of many."""
    claims = list(claims)
    message_ids = {pk for one in claims for pk in one.message_ids}
    generation_ids = {one.generation_id for one in claims if one.generation_id is not None}
    accepted = [(one.message_id, one.accepted_by) for one in claims if one.message_id and one.accepted_by]
    messages = _messages(owner_id, message_ids)
    gone = forgotten.taught_by(owner_id, message_ids, generation_ids)
    rows = {message.pk: message for message in messages.values()}
    calls = _calls_answered_by(rows.values())
    generations = Generation.objects.filter(
        owner_id=owner_id, pk__in=generation_ids, thread__deleted__isnull=True
    ).select_related("thread")
    found = {one.pk: one for one in generations.defer("opening", "summary", "summary_before", "standing")}
    standing = Generation.objects.filter(Exists(own_rows(generation=OuterRef("pk"))), pk__in=found)
    pairs = [(messages[one], messages[other]) for one, other in accepted if one in messages and other in messages]
    return CitedRows(
        messages=messages,
        calls=calls,
        generations=found,
        proving=_proving(rows),
        rewound=_rewound([*rows.values(), *(call.message for call in calls.values())]),
        standing_generations=set(standing.values_list("pk", flat=True)) if found else set(),
        forgotten_messages=gone[0],
        forgotten_generations=gone[1],
        answers=_answers(pairs),
    )


def _messages(owner_id: int, ids: Collection[int]) -> dict[int, Message]:
    mine = Message.objects.filter(owner_id=owner_id, thread__deleted__isnull=True).select_related("thread")
    mine = mine.defer(*_LONG)
    cited = mine.in_bulk(ids)
    copies = {message.copied_from_id for message in cited.values() if message.copied_from_id is not None}
    originals = mine.in_bulk(copies)

    def original(message: Message) -> Message:
        found = originals.get(message.copied_from_id or 0)
        return message if found is None or found.thread_id != message.thread_id else found

    return {pk: original(message) for pk, message in cited.items()}


def _proving(ids: Collection[int]) -> set[int]:
    rows = Message.objects.filter(FROM_PEOPLE_AND_TOOLS, pk__in=ids, model_visible=True, wire__isnull=False)
    return set(rows.values_list("pk", flat=True)) if ids else set()


def _calls_answered_by(messages: Iterable[Message]) -> dict[int, ToolCall]:
    """The calls whose results these rows are, by the row's id."""
    owners = {message.pk: message.owner_id for message in messages if message.role == Message.Role.TOOL}
    calls = ToolCall.objects.filter(result__in=owners).select_related("message")
    calls = calls.defer(*(f"message__{column}" for column in _LONG))
    return {call.result_id: call for call in calls if call.result_id and call.owner_id == owners[call.result_id]}


def _rewound(messages: Iterable[Message]) -> set[int]:
    """Those that were rewound. A row counts as live while a copy of it in its conversation was not rewound itself (it
    may have gone cold since: that takes nothing back)."""
    gone = {message.pk for message in messages if message.left_because == Message.LeftBecause.SUPERSEDED}
    if not gone:
        return gone
    copies = Message.objects.filter(copied_from__in=gone, thread_id=F("copied_from__thread_id"))
    copies = copies.exclude(left_because=Message.LeftBecause.SUPERSEDED)
    return gone - set(copies.values_list("copied_from_id", flat=True))


def _answers(pairs: Collection[tuple[Message, Message]]) -> set[tuple[int, int]]:
    """Those of (conclusion, answer) between which the assistant said nothing, and the person neither."""
    pairs = [(one, other) for one, other in pairs if one.thread_id == other.thread_id and one.pk < other.pk]
    if not pairs:
        return set()
    of_assistant = {"thread_id": OuterRef("thread_id"), "role": Message.Role.ASSISTANT, "text__regex": r"\S"}
    later = standing_rows(pk__gt=OuterRef("pk"), **of_assistant).filter(_SAYS_NEW).order_by("pk").values("pk")[:1]
    concluded = Message.objects.filter(pk__in={one.pk for one, _other in pairs})
    said_next = dict(concluded.annotate(next=Subquery(later)).values_list("pk", "next"))
    pairs = [(one, other) for one, other in pairs if (said_next[one.pk] or other.pk) >= other.pk]
    if not pairs:
        return set()
    ranges = [Q(thread_id=one.thread_id, pk__gt=one.pk, pk__lt=other.pk) for one, other in pairs]
    between = standing_rows(role__in=[Message.Role.USER, Message.Role.TOOL]).filter(_SAYS_NEW, reduce(or_, ranges))
    spoken = list(between.defer(*_LONG))
    calls = _calls_answered_by(spoken)
    heard = [(row.thread_id, row.pk) for row in spoken if _words_of_person(row, calls)]
    return {
        (one.pk, other.pk)
        for one, other in pairs
        if not any(thread == one.thread_id and one.pk < pk < other.pk for thread, pk in heard)
    }


# A copy in the same conversation says nothing new.
_SAYS_NEW = Q(copied_from__isnull=True) | ~Q(copied_from__thread_id=F("thread_id"))


def _words_of_person(message: Message, calls: Mapping[int, ToolCall]) -> str:
    if message.role == Message.Role.USER:
        return own_words(message.text)
    call = calls.get(message.pk)
    if message.role != Message.Role.TOOL or message.is_error or call is None:
        return ""
    return own_words(message.text) if call.tool == QUESTION_TOOL and call.status == ToolCall.Status.DONE else ""
