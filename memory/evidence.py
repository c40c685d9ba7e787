"""The one judge of evidence, for every writer of facts.

A claim is what a writer cites; a proof is a claim that holds. Ids are looked up among the owner's own rows, so that a
foreign id is as unknown as an invented one. All claims of a fact have to hold, none may be of what taught a fact that
was forgotten, and together they have to fit it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import User
from agent import registry
from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from memory import cited_rows
from memory.asking import only_asks
from memory.assent import accepts, names_something_else
from memory.cited_rows import CitedRows
from memory.claims import Claim, Kind, check_form
from memory.dates import Said
from memory.models import Fact, FactEvidence
from memory.pointing import found_by
from memory.refusals import EvidenceRefused
from memory.standing import GIVEN
from threads.looking_back import LOOKING_BACK
from threads.models import Generation, Message, Thread
from threads.transcript import fold

# A question is no preference, no decision, and tells nothing of who somebody is.
NOT_BY_ASKING = {Fact.Aspect.PREFERENCE, Fact.Aspect.DECISION, Fact.Aspect.IDENTITY}
FROM_THE_PERSON = {Kind.MAX_STATED, Kind.MAX_ACCEPTED}


@dataclass(frozen=True)
class Proof:
    """A claim that holds, with its rows. `said` is when the words were said, or the outcome was there."""

    kind: Kind
    thread: Thread
    message: Message | None
    generation: Generation | None
    accepted_by: Message | None
    said: datetime
    asks: bool = False
    call: ToolCall | None = None

    @property
    def given(self) -> datetime:
        """When it was complete: an acceptance comes after what it accepts."""
        return self.said if self.accepted_by is None else self.accepted_by.created


def check(
    owner: User | int,
    claims: Iterable[Claim],
    *,
    kind: str,
    aspect: str = "",
    tone: str = "",
    text: str | None = None,
    thread: Thread | None = None,
    rows: CitedRows | None = None,
) -> list[Proof]:
    """The proofs that the claims are, in their order and each once. With a `thread`, all of them have to be of it; with
    the `text` of a pointer, one has to have found what it names. `rows`: what was read of them, where that was done
    for many facts at once.
    Raises EvidenceRefused with a sentence that says which does not hold, and why."""
    owner_id = owner if isinstance(owner, int) else owner.pk
    claims = list(dict.fromkeys(claims))
    if not claims:
        raise EvidenceRefused("A fact needs evidence: cite the message that proves it.")
    rows = cited_rows.read(owner_id, claims) if rows is None else rows
    proofs: list[Proof] = []
    for claim in claims:
        check_form(claim)
        if kind == Fact.Kind.ABOUT_USER and claim.kind not in FROM_THE_PERSON:
            raise EvidenceRefused(
                f"{claim} is {claim.kind} and proves nothing about the person: cite what they said or accepted."
            )
        proof = _PROVE[claim.kind](rows, claim)
        if thread is not None and proof.thread.pk != thread.pk:
            raise EvidenceRefused(f"{claim} is of another conversation.")
        proofs.append(proof)
    _check_not_forgotten(rows, claims)
    _check_together(proofs, kind, aspect, tone, text)
    return list({(p.kind, p.message and p.message.pk, p.generation, p.accepted_by): p for p in proofs}.values())


def outweighs(proofs: Sequence[Proof], fact: Fact) -> bool:
    """Whether proofs may replace a fact or take it back: what somebody put right by hand yields to what was said later
    alone, and a decision of the person's to their word alone."""
    if fact.writer in Fact.BY_HAND and all(proof.given <= fact.created for proof in proofs):
        return False
    return (
        fact.tone != Fact.Tone.DECISION
        or any(proof.kind in FROM_THE_PERSON for proof in proofs)
        or not FactEvidence.objects.filter(fact=fact, kind__in=FROM_THE_PERSON).exists()
    )


def later(proofs: Sequence[Proof], facts: QuerySet[Fact]) -> QuerySet[Fact]:
    """Those of some facts that have evidence newer than all of the proofs: an older view neither supersedes such a fact
    nor takes it back, whenever it is read."""
    rows = FactEvidence.objects.filter(fact=OuterRef("pk")).annotate(given=GIVEN)
    return facts.filter(Exists(rows.filter(given__gt=max(proof.given for proof in proofs))))


def times_of(proofs: Sequence[Proof]) -> Said:
    """When a relative time in the words of a fact may have been said: when the messages were that say it, among those
    that prove the fact; where none says it, when any of them was."""
    spoken = [
        (_in_one_line(row.text), row.created)
        for proof in proofs
        for row in (proof.message, proof.accepted_by)
        if row is not None
    ]

    def said(expression: str) -> list[datetime]:
        sought = _in_one_line(expression)
        return [moment for words, moment in spoken if sought in words] or [proof.said for proof in proofs]

    return said


def _in_one_line(text: str) -> str:
    return " ".join(fold(text).split())


def rows_of(proofs: Iterable[Proof], fact: Fact) -> list[FactEvidence]:
    """The proofs as evidence rows of a fact, unsaved."""
    return [
        FactEvidence(
            fact=fact,
            owner_id=fact.owner_id,
            kind=proof.kind,
            message=proof.message,
            generation=proof.generation,
            accepted_by=proof.accepted_by,
        )
        for proof in proofs
    ]


def _message(rows: CitedRows, message_id: int | None) -> Message:
    """A row that proves something."""
    message = rows.messages.get(message_id or 0)
    if message is None:
        raise EvidenceRefused(f"There is no message {message_id}.")
    if message.pk not in rows.proving:
        raise EvidenceRefused(f"message {message_id} is the server's own and proves nothing.")
    if message.pk in rows.rewound:
        raise EvidenceRefused(f"message {message_id} was rewound and proves nothing new.")
    return message


def _stated(rows: CitedRows, claim: Claim) -> Proof:
    message = _message(rows, claim.message_id)
    if not rows.words_of_person(message):
        raise EvidenceRefused(
            f"message {claim.message_id} is not the person's own words: max-stated cites what they wrote themselves or "
            "answered to a question card."
        )
    return Proof(claim.kind, message.thread, message, None, None, message.created, asks=only_asks(message.text))


def _accepted(rows: CitedRows, claim: Claim) -> Proof:
    conclusion, acceptance = _message(rows, claim.message_id), _message(rows, claim.accepted_by)
    if conclusion.role != Message.Role.ASSISTANT or not conclusion.text.strip():
        raise EvidenceRefused(f"message {claim.message_id} is no conclusion of the assistant's that could be accepted.")
    if acceptance.thread_id != conclusion.thread_id:
        raise EvidenceRefused(f"accepted_by {claim.accepted_by} is of another conversation than the conclusion.")
    if acceptance.pk <= conclusion.pk:
        raise EvidenceRefused(f"accepted_by {claim.accepted_by} stands before the conclusion: cite the later answer.")
    if not rows.words_of_person(acceptance):
        raise EvidenceRefused(f"accepted_by {claim.accepted_by} is not the person's own words.")
    if (conclusion.pk, acceptance.pk) not in rows.answers:
        raise EvidenceRefused(
            f"accepted_by {claim.accepted_by} is not the person's first answer to message {claim.message_id}, or other "
            "words of the assistant's stand in between: cite the conclusion that they answered."
        )
    if not accepts(acceptance.text):
        raise EvidenceRefused(
            f"accepted_by {claim.accepted_by} does not expressly accept: silence, a question, a condition or a no is "
            "no acceptance."
        )
    if names_something_else(acceptance.text, conclusion.text):
        raise EvidenceRefused(
            f"accepted_by {claim.accepted_by} names something that the conclusion does not speak of: cite it as the "
            "person's own statement."
        )
    return Proof(claim.kind, conclusion.thread, conclusion, None, acceptance, conclusion.created)


def _result(rows: CitedRows, claim: Claim) -> Proof:
    message = _message(rows, claim.message_id)
    if message.role != Message.Role.TOOL:
        raise EvidenceRefused(f"message {claim.message_id} is not the result of a tool.")
    call = rows.calls.get(message.pk)
    if call is None or call.message.thread_id != message.thread_id:
        raise EvidenceRefused(f"message {claim.message_id} answers no known call of a tool.")
    if message.is_error or call.status != ToolCall.Status.DONE:
        raise EvidenceRefused(f"message {claim.message_id} is the result of a call that failed.")
    if call.message_id in rows.rewound:
        raise EvidenceRefused(f"The call behind message {claim.message_id} was rewound and proves nothing new.")
    if call.tool in LOOKING_BACK:
        raise EvidenceRefused(f"message {claim.message_id} only repeats old words: cite the message that it shows.")
    if call.tool == QUESTION_TOOL:
        raise EvidenceRefused(f"message {claim.message_id} is the person's answer: cite it as max-stated.")
    return Proof(claim.kind, message.thread, message, None, None, message.created, call=call)


def _outcome(rows: CitedRows, claim: Claim) -> Proof:
    if claim.generation_id is None:
        return _result(rows, claim)
    generation = rows.generations.get(claim.generation_id)
    if generation is None:
        raise EvidenceRefused(f"There is no generation {claim.generation_id}.")
    if generation.ended is None:
        raise EvidenceRefused(f"generation {claim.generation_id} has not ended: its outcome is open.")
    if generation.pk not in rows.standing_generations:
        raise EvidenceRefused(f"Nothing of its own stands of generation {claim.generation_id}.")
    return Proof(claim.kind, generation.thread, None, generation, None, generation.ended)


_PROVE = {
    Kind.MAX_STATED: _stated,
    Kind.MAX_ACCEPTED: _accepted,
    Kind.TOOL_VERIFIED: _result,
    Kind.OBSERVED_OUTCOME: _outcome,
}


def _check_not_forgotten(rows: CitedRows, claims: Sequence[Claim]) -> None:
    if any(rows.is_forgotten(claim) for claim in claims):
        raise EvidenceRefused(
            f"What {', '.join(map(str, claims))} taught was forgotten at the person's wish, so nothing is proved by it "
            "any more: only what they say anew is remembered. Leave it."
        )


def _check_together(proofs: Sequence[Proof], kind: str, aspect: str, tone: str, text: str | None) -> None:
    decides = aspect in NOT_BY_ASKING or tone == Fact.Tone.DECISION
    of_person = [proof for proof in proofs if proof.kind in FROM_THE_PERSON]
    if decides and not of_person:
        raise EvidenceRefused("A decision is the person's own: cite where they decided, or write it as a remark.")
    if decides and all(proof.asks for proof in of_person):
        raise EvidenceRefused(
            f"Questions alone prove no {aspect if aspect in NOT_BY_ASKING else 'decision'}: cite where the person "
            "decided, or write nothing."
        )
    if kind == Fact.Kind.POINTER and not any(_found_it(proof, text) for proof in proofs):
        raise EvidenceRefused(
            "A pointer needs a tool-verified result of a tool that only reads, which found the document where the "
            "pointer says: its call or its result holds the path."
        )


def _found_it(proof: Proof, text: str | None) -> bool:
    if proof.kind != Kind.TOOL_VERIFIED or proof.call is None or proof.message is None:
        return False
    if text is not None:
        return found_by(proof.call, proof.message, text)
    tool = registry.get(proof.call.tool)
    return tool is not None and tool.reads_only
