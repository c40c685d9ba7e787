"""From a shadow's answer to rows: three checks, each harder than the one before.

The schema; the one judge of evidence, with all evidence and its lineage of this conversation and `replaces` within the
conversation's Viewer; the database. Each item stands or falls by itself. What falls is kept with the reason.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import JSONField, Value

from agent.policy import SHADOW_TOOL
from agent.tool_arguments import Schema, problem_with
from llm.events import Answer
from maxclaw.text import head
from memory import cited_rows, evidence, forgotten, secrets
from memory.cited_rows import CitedRows
from memory.claims import Claim, parse
from memory.evidence import Proof
from memory.fact_drafts import FactDraft, check_no_secret, clean, dated, fingerprint_of
from memory.fact_rows import visible_facts
from memory.models import Fact
from memory.refusals import FactRefused
from shadow.models import ShadowFactProposal, ShadowProposalEvidence, ShadowRun
from shadow.salvaging import salvaged
from shadow.tools import ITEM, ITEMS_MAX, LIST
from threads.models import Generation, Message, Thread
from threads.visibility import Viewer

ERROR_MAX_CHARS = 1_000
RAW_MAX_CHARS = 20_000
_ITEM = Schema(ITEM)
_REPLACES = re.compile(r"\s*([fp]):(\d{1,100})\s*")
_GREATEST_ID = 2**63 - 1


@dataclass(frozen=True)
class Read:
    """What an answer proposes: the items as written, and the names of other tools that it called."""

    items: list[Any] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    proposed: bool = False


def read(answer: Answer) -> Read:
    """The items of all proposal calls, in order. A call whose input is no list of items counts as one item that does
    not hold."""
    items: list[Any] = []
    foreign: list[str] = []
    proposed = False
    for block in answer.blocks:
        if block.get("type") != "tool_use":
            continue
        if block["name"] != SHADOW_TOOL:
            foreign.append(block["name"])
            continue
        proposed = True
        said = salvaged(block["input"])
        listed = said.get(LIST)
        items += listed if isinstance(listed, list) and set(said) == {LIST} else [said]
    if len(items) > ITEMS_MAX:
        # Kept as one more that is rejected, so that whoever looks at the run sees it.
        items[ITEMS_MAX:] = [f"{len(items) - ITEMS_MAX} more items, which were not read: at most {ITEMS_MAX} are."]
    return Read(items, foreign, proposed)


@dataclass(frozen=True)
class Candidate:
    """An item as far as it can be judged by itself. `cites` is its evidence, as far as that can be read. `error`: what
    does not hold of its form; then there is no draft. `replaces` is the tag and number of what it takes the place
    of."""

    item: Any
    cites: tuple[Claim, ...] = ()
    draft: FactDraft | None = None
    replaces: tuple[str, int] | None = None
    error: str = ""

    def said(self, name: str) -> str:
        """A text of the item as written; blank where there is none."""
        value = self.item.get(name) if isinstance(self.item, dict) else None
        return value if isinstance(value, str) else ""

    @property
    def names(self) -> tuple[str, int] | None:
        """Tag and number of what the item says it replaces, whatever else of it does not hold."""
        return named(self.said("replaces"))


# Stands for an item whose words no database takes.
UNKEPT = Candidate("what was proposed cannot be stored")


def candidates(items: Iterable[Any]) -> list[Candidate]:
    """The items by the first check, that of their form, which looks at no row."""
    return [_candidate(item) for item in items]


def without_forgotten(found: Sequence[Candidate], owner_id: int, facts: Mapping[int, str]) -> list[Candidate]:
    """The items but those that say or would replace a fact that was there, by its id with its fingerprint, and is not
    any more, and those that cite what taught a forgotten fact, and so may say it in other words: nothing of them is
    kept, not even as rejected. In a transaction that holds the owner's facts."""
    there = set(Fact.objects.filter(owner_id=owner_id).values_list("pk", flat=True))
    gone = {pk: fingerprint for pk, fingerprint in facts.items() if pk not in there}
    words, named = set(gone.values()), {("f", pk) for pk in gone}
    messages, generations = forgotten.taught_by(
        owner_id,
        {pk for one in found for claim in one.cites for pk in claim.message_ids},
        {claim.generation_id for one in found for claim in one.cites if claim.generation_id is not None},
    )

    def speaks_of_it(one: Candidate) -> bool:
        if fingerprint_of(one.said("text")) in words or one.names in named:
            return True
        return any(
            claim.generation_id in generations or not messages.isdisjoint(claim.message_ids) for claim in one.cites
        )

    return [one for one in found if not speaks_of_it(one)]


def store(run: ShadowRun, thread: Thread, found: Sequence[Candidate]) -> list[ShadowFactProposal]:
    """A row for each item, in the caller's transaction: however many there are, they are judged and written by the same
    few statements. The thread is locked against changes of its level, and is not isolated."""
    judged = _judged(thread, found)
    rows = [_row(run, thread, position, one) for position, one in enumerate(judged)]
    try:
        _write(rows)
    except DatabaseError:
        # Only what the database refuses is to fall: each by itself.
        rows = [_written_alone(run, thread, position, one) for position, one in enumerate(judged)]
    return [proposal for proposal, _evidence in rows]


@dataclass(frozen=True)
class _Judged:
    """An item with what the rows say of it; `cites` is all of its evidence that there is to keep."""

    candidate: Candidate
    draft: FactDraft | None
    cites: list[Claim]
    error: str


_Row = tuple[ShadowFactProposal, list[ShadowProposalEvidence]]


def _candidate(item: Any) -> Candidate:
    problem = problem_with(item, _ITEM)
    if problem is not None:
        return Candidate(item, _readable(item), error=f"Not as the tool says{problem}")
    try:
        draft = clean(
            FactDraft(
                text=item["text"],
                kind=item["kind"],
                aspect=item.get("aspect", ""),
                applies_to=item.get("applies_to", ""),
                tone=item["tone"],
            )
        )
        claims = tuple(parse(raw) for raw in item["evidence"])
        return Candidate(item, claims, draft, _replaced(item.get("replaces")))
    except FactRefused as refusal:
        return Candidate(item, _readable(item), error=str(refusal))


def _replaced(value: str | None) -> tuple[str, int] | None:
    """Raises FactRefused."""
    if value is None:
        return None
    found = named(value)
    if found is None:
        raise FactRefused("replaces is the id of a fact (f:) or of a proposal (p:) that was shown.")
    return found


def named(replaces: str) -> tuple[str, int] | None:
    """Tag and number that a `replaces` names, however it is spelled; None where it names nothing. Its one reader."""
    found = _REPLACES.fullmatch(replaces)
    if found is None or int(found.group(2)) > _GREATEST_ID:
        return None
    return found.group(1), int(found.group(2))


def _judged(thread: Thread, found: Sequence[Candidate]) -> list[_Judged]:
    """The second check, by the rows that the items cite and replace."""
    rows = cited_rows.read(thread.owner_id, [claim for one in found if one.draft for claim in one.cites])
    shown = _replaceable(thread, {one.replaces for one in found if one.replaces is not None})
    judged = []
    for one in found:
        if one.draft is None:
            judged.append(_Judged(one, None, [], one.error))
            continue
        try:
            draft, proofs = _proved(thread, one.draft, one.cites, rows)
            if one.replaces is not None and one.replaces not in shown:
                what = {"f": "fact", "p": "proposal"}[one.replaces[0]]
                raise FactRefused(f"There is no {what} {one.replaces[1]} to replace.")
        except FactRefused as refusal:
            judged.append(_Judged(one, None, [], str(refusal)))
        else:
            judged.append(_Judged(one, draft, [_claim_of(proof) for proof in proofs], ""))
    return _with_what_there_is(thread, judged)


def _proved(
    thread: Thread, draft: FactDraft, claims: Sequence[Claim], rows: CitedRows
) -> tuple[FactDraft, list[Proof]]:
    """Raises FactRefused with what does not hold."""
    proofs = evidence.check(
        thread.owner_id,
        claims,
        kind=draft.kind,
        aspect=draft.aspect,
        tone=draft.tone,
        text=draft.text,
        thread=thread,
        rows=rows,
    )
    for proof in proofs:
        for row in (proof.message, proof.accepted_by):
            if row is not None and row.copied_from_id is not None:
                raise FactRefused(f"message {row.pk} was copied from another conversation.")
    draft = dated(draft, evidence.times_of(proofs), thread.owner)
    check_no_secret(draft)
    return draft, proofs


def _claim_of(proof: Proof) -> Claim:
    """What is kept of a proof: of a copy, the original."""
    return Claim(
        proof.kind, *(None if row is None else row.pk for row in (proof.message, proof.generation, proof.accepted_by))
    )


def _replaceable(thread: Thread, named: Set[tuple[str, int]]) -> set[tuple[str, int]]:
    """Those facts and proposals, as tag and number, that the conversation may see and that stand."""
    facts = {number for tag, number in named if tag == "f"}
    proposals = {number for tag, number in named if tag == "p"}
    seen = visible_facts(Viewer.of_thread(thread)).filter(pk__in=facts, status=Fact.Status.ACTIVE)
    held = ShadowFactProposal.objects.filter(pk__in=proposals, thread=thread, validation_error="")
    found = {("f", pk) for pk in seen.values_list("pk", flat=True)} if facts else set()
    return found | ({("p", pk) for pk in held.values_list("pk", flat=True)} if proposals else set())


def _with_what_there_is(thread: Thread, judged: Sequence[_Judged]) -> list[_Judged]:
    """The same, with what rejected items cite of rows of the owner's that there are, for whoever looks at them. Not of
    what was deleted, nor of an island, whose words are seen nowhere else."""
    cited = {place: list(dict.fromkeys(one.candidate.cites)) for place, one in enumerate(judged) if one.draft is None}
    claims = [claim for listed in cited.values() for claim in listed]
    there = {"owner_id": thread.owner_id, "thread__scope": Thread.Scope.OPEN, "thread__deleted": None}
    messages = Message.objects.filter(pk__in={pk for claim in claims for pk in claim.message_ids}, **there)
    generations = Generation.objects.filter(pk__in={claim.generation_id for claim in claims}, **there)
    known = set(messages.values_list("pk", flat=True)) if claims else set()
    whole = set(generations.values_list("pk", flat=True)) if claims else set()
    return [
        replace(
            one,
            cites=[
                claim
                for claim in cited.get(place, one.cites)
                if place not in cited
                or (
                    known.issuperset(claim.message_ids)
                    and (claim.generation_id is None or claim.generation_id in whole)
                )
            ],
        )
        for place, one in enumerate(judged)
    ]


def _readable(item: Any) -> tuple[Claim, ...]:
    """The evidence of an item, as far as it can be read."""
    listed = item.get("evidence") if isinstance(item, dict) else None
    claims = []
    for raw in listed if isinstance(listed, list) else []:
        with contextlib.suppress(FactRefused):
            claims.append(parse(raw))
    return tuple(claims)


def _row(run: ShadowRun, thread: Thread, position: int, judged: _Judged) -> _Row:
    """What is to be written of an item."""
    candidate, draft = judged.candidate, judged.draft
    if draft is None:
        text = secrets.redact(" ".join(candidate.said("text").split()))[:RAW_MAX_CHARS]
        draft = FactDraft(
            text=text,
            kind=_one_of(candidate, "kind", Fact.Kind.values),
            aspect=_one_of(candidate, "aspect", Fact.Aspect.values),
            applies_to=secrets.redact(candidate.said("applies_to"))[:RAW_MAX_CHARS],
            tone=_one_of(candidate, "tone", Fact.Tone.values),
        )
    replaced = None if judged.error else candidate.replaces
    tag, number = candidate.names or ("", None)
    proposal = ShadowFactProposal(
        run=run,
        thread=thread,
        owner_id=thread.owner_id,
        position=position,
        text=draft.text,
        kind=draft.kind,
        aspect=draft.aspect,
        applies_to=draft.applies_to,
        tone=draft.tone,
        replaces_fact_id=replaced[1] if replaced and replaced[0] == "f" else None,
        replaces_proposal_id=replaced[1] if replaced and replaced[0] == "p" else None,
        names_fact=number if tag == "f" else None,
        names_proposal=number if tag == "p" else None,
        fingerprint=fingerprint_of(draft.text) if draft.text else "",
        validation_error=head(secrets.redact(judged.error), ERROR_MAX_CHARS),
        raw=_raw(candidate.item),
        category=thread.category,
    )
    return proposal, [
        ShadowProposalEvidence(
            proposal=proposal,
            owner_id=thread.owner_id,
            kind=claim.kind,
            message_id=claim.message_id,
            generation_id=claim.generation_id,
            accepted_by_id=claim.accepted_by,
        )
        for claim in judged.cites
    ]


def _write(rows: Sequence[_Row]) -> None:
    """The third check, the database's. Raises DatabaseError, nothing written."""
    with transaction.atomic():
        ShadowFactProposal.objects.bulk_create([proposal for proposal, _evidence in rows])
        ShadowProposalEvidence.objects.bulk_create([piece for _proposal, pieces in rows for piece in pieces])
        # Deferred rules speak now, while what they refuse can be taken back.
        connection.check_constraints()


def _written_alone(run: ShadowRun, thread: Thread, position: int, judged: _Judged) -> _Row:
    """One item's row, as rejected where the database refuses it, and without what it says where that cannot be kept:
    no item takes others along."""
    tried = judged
    while True:
        row = _row(run, thread, position, tried)
        try:
            _write([row])
        except DatabaseError as refusal:
            if tried.candidate is UNKEPT:
                raise
            error = judged.error or f"The database refused it: {type(refusal).__name__}."
            tried = _Judged(UNKEPT, None, [], error) if tried.error else replace(judged, draft=None, error=error)
        else:
            return row


def _raw(item: Any) -> Any:
    if item is None:
        return Value(None, JSONField())  # JSON's null, where None is the database's
    text = json.dumps(item, ensure_ascii=False)
    return secrets.redact_leaves(item if len(text) <= RAW_MAX_CHARS else head(text, RAW_MAX_CHARS))


def _one_of(candidate: Candidate, name: str, values: Sequence[str]) -> str:
    said = candidate.said(name)
    return said if said in values else ""
