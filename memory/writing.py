"""The one entry for every writer of facts: tools, steward, shadow, import, staff and the person's own page.

Locks, always in this order: the conversations that evidence comes from, by id; then the owner's facts, an advisory lock
that lasts until the transaction ends. Whoever makes a conversation stricter or erases it takes them in the same order,
so a fact is judged at the level which its evidence has when it commits, and two writers never write the same fact
twice. No conversation is held while the facts are waited for, so that nobody's words wait for other conversations.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.db.models import Q

from maxclaw import clock
from memory import evidence, fact_rows
from memory.changing import correct, merge, restore, retire
from memory.claims import Claim
from memory.evidence import Proof
from memory.fact_drafts import FactDraft, check_no_secret, clean, dated, fingerprint_of
from memory.fact_rows import (
    add,
    add_rows_of,
    create,
    level_of,
    lock_threads_and_facts,
    log,
    same_fact,
    supersede,
    taken_back,
    visible_facts,
)
from memory.models import Fact, FactLog
from memory.refusals import EvidenceRefused, FactRefused
from threads.models import Thread
from threads.visibility import Level, Viewer, can_flow

__all__ = [
    "EvidenceRefused",
    "FactDraft",
    "FactRefused",
    "Outcome",
    "Written",
    "correct",
    "merge",
    "restore",
    "retire",
    "visible_facts",
    "write_fact",
]


SETTLED = "is a decision of the person's, or was put right by hand"


class Outcome(StrEnum):
    """What became of a fact that was to be written."""

    NEW = "new"
    MORE_EVIDENCE = "more-evidence"
    SUPERSEDED = "superseded"


@dataclass(frozen=True)
class Written:
    """The fact that stands now, and whether it is new, was there already, or superseded another."""

    fact: Fact
    outcome: Outcome


def write_fact(
    owner_id: int,
    draft: FactDraft,
    claims: Iterable[Claim],
    *,
    writer: str,
    thread: Thread,
    replaces: int | None = None,
    viewer: Viewer | None = None,
    reason: str = "",
    within: Thread | None = None,
) -> Written:
    """Write one fact at the level of `thread`, which whoever writes reads from.

    The same words again, at the same visibility, add evidence and no row; what was retired, forgotten or put right by
    hand comes back only where it was said after that. `replaces` is the fact that it supersedes,
    one that the viewer (that of the thread, if none is given) may see. With `within`, all evidence has to be of that
    conversation. Raises FactRefused (EvidenceRefused among it) with a sentence that says what to change.
    """
    claims = list(claims)
    if thread.owner_id != owner_id:
        raise FactRefused("This conversation is another person's.")
    with transaction.atomic():
        # What is not of the one conversation that all evidence has to be of is refused, whatever becomes of it.
        cited = _threads_cited(owner_id, claims) if within is None else {within.pk}
        lock_threads_and_facts(owner_id, {thread.pk, *cited})
        thread = Thread.objects.select_related("owner").get(pk=thread.pk)
        level = Level.of_thread(thread)
        draft = clean(draft)
        proofs = evidence.check(
            owner_id,
            claims,
            kind=draft.kind,
            aspect=draft.aspect,
            tone=draft.tone,
            text=draft.text,
            thread=within,
        )
        for proof in proofs:
            if not can_flow(Level.of_thread(proof.thread), level):
                raise FactRefused("The evidence is of a conversation whose words may not be seen here.")
        draft = dated(draft, evidence.times_of(proofs), thread.owner)
        check_no_secret(draft)
        visible_to = Viewer.of_thread(thread) if viewer is None else viewer
        replaced = None if replaces is None else _replaceable(visible_to, replaces, draft, level, proofs)
        same = same_fact(owner_id, draft, level)
        if same is not None and (replaced is None or replaced.pk == same.pk):
            add(same, proofs)
            if draft.tone == Fact.Tone.DECISION and same.tone != draft.tone:
                Fact.objects.filter(pk=same.pk).update(tone=draft.tone, changed=clock.now())
            same.refresh_from_db()
            return Written(same, Outcome.MORE_EVIDENCE)
        if same is None and replaced is None:
            _check_current(owner_id, draft, level, proofs)
        back = None if same is not None else taken_back(owner_id, draft, level)
        if back is not None and all(proof.given <= back for proof in proofs):
            raise FactRefused("The same was taken back or forgotten after this was said: leave it.")
        fact = create(owner_id, draft, level, writer)
        add(fact, proofs)
        if same is not None:
            # What replaces one fact says what another one says already: both become this one.
            add_rows_of(fact, [same])
            supersede(same, fact, reason)
        if replaced is None:
            return Written(fact, Outcome.NEW)
        supersede(replaced, fact, reason)
        log(owner_id, FactLog.Action.REPLACE, [replaced], [fact], writer=writer, reason=reason)
        return Written(fact, Outcome.SUPERSEDED)


def _threads_cited(owner_id: int, claims: Sequence[Claim]) -> set[int]:
    messages = {pk for claim in claims for pk in claim.message_ids}
    generations = {claim.generation_id for claim in claims if claim.generation_id is not None}
    of_owner = Thread.objects.filter(owner_id=owner_id)
    found = of_owner.filter(Q(messages__in=messages) | Q(generations__in=generations))
    return set(found.values_list("pk", flat=True))


def _replaceable(viewer: Viewer, fact_id: int, draft: FactDraft, level: Level, proofs: Sequence[Proof]) -> Fact:
    old = visible_facts(viewer).filter(pk=fact_id).first()
    if old is None:
        raise FactRefused(f"There is no fact {fact_id} to replace.")
    if old.status != Fact.Status.ACTIVE:
        raise FactRefused(f"Fact {fact_id} is {old.status} already: write without replaces.")
    if level_of(old) != level:
        raise FactRefused(
            f"Fact {fact_id} is seen in other places than this one would be: both stand. Leave replaces out."
        )
    if fingerprint_of(old.applies_to) != fingerprint_of(draft.applies_to):
        raise FactRefused(
            f"Fact {fact_id} applies to “{old.applies_to or 'everything'}”, this one to "
            f"“{draft.applies_to or 'everything'}”: views that apply to different things stand side by side. Leave "
            "replaces out."
        )
    if old.kind != draft.kind:
        raise FactRefused(f"Fact {fact_id} is of the kind {old.kind}, this one of {draft.kind}: leave replaces out.")
    if not evidence.outweighs(proofs, old):
        raise FactRefused(f"Fact {fact_id} {SETTLED}: only a later word of theirs replaces it.")
    check_not_older(proofs, old)
    return old


def check_not_older(proofs: Sequence[Proof], fact: Fact) -> None:
    """Raises FactRefused where a fact rests on something later than all proofs that are to change it."""
    if evidence.later(proofs, Fact.objects.filter(pk=fact.pk)).exists():
        raise FactRefused(
            f"Fact {fact.pk} was said or seen later than this: a later view supersedes an earlier one, never the other "
            "way round. This held before and is no news: leave it, and do not write it beside the fact either."
        )


def _check_current(owner_id: int, draft: FactDraft, level: Level, proofs: Sequence[Proof]) -> None:
    """Refuse an older view that would stand as if it were current beside a later one on the same thing.

    It is not kept as superseded: what supersedes is newer in the order of rows too, so the later fact would have to be
    written once more under another id, for words that stay findable in their conversation. Rules know two views of the
    same thing where the words came to be superseded before, and where both name the same thing that they apply to;
    of what applies in general only a model can tell, and the steward's prompt says what to do.
    """
    successors = fact_rows.successors(owner_id, draft, level)
    newer = evidence.later(proofs, successors).first()
    if newer is not None:
        raise FactRefused(f"The same was superseded since by fact {newer.pk}, which was said or seen later: leave it.")
    beside = evidence.later(proofs, fact_rows.of_same_thing(owner_id, draft, level)).order_by("-pk").first()
    if beside is not None:
        raise FactRefused(
            f"Fact {beside.pk} applies to “{beside.applies_to}” too, and was said or seen later. If this speaks of the "
            "same thing, it held before and is no news: leave it. If it speaks of another, say of which in applies_to."
        )
