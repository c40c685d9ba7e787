"""From a shadow's answer to rows: three checks, each harder than the one before.

The schema; the one judge of evidence, with all evidence and its lineage of this conversation and `replaces` within the
conversation's Viewer; the database. Each item stands or falls by itself. What falls is kept with the reason.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import DatabaseError, connection, transaction
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from agent.policy import SHADOW_TOOL
from llm.events import Answer
from maxclaw.text import head
from memory import evidence, forgotten, secrets
from memory.claims import Claim, parse
from memory.evidence import Proof
from memory.fact_drafts import FactDraft, check_no_secret, clean, dated, fingerprint_of
from memory.fact_rows import visible_facts
from memory.models import Fact
from memory.refusals import FactRefused
from shadow.models import ShadowFactProposal, ShadowProposalEvidence, ShadowRun
from shadow.salvaging import salvaged
from shadow.tools import ITEM, LIST
from threads.models import Generation, Message, Thread
from threads.visibility import Viewer

ITEMS_MAX = 50
ERROR_MAX_CHARS = 1_000
RAW_MAX_CHARS = 20_000
_ITEM = Draft202012Validator(ITEM)
_REPLACES = re.compile(r"\s*([fp]):(\d{1,18})\s*")


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
    return Read(items[:ITEMS_MAX], foreign, proposed)


def without_forgotten(items: Sequence[Any], owner_id: int, facts: Mapping[int, str]) -> list[Any]:
    """The items but those that say or would replace a fact that was there, by its id with its fingerprint, and is not
    any more, and those that cite what taught a forgotten fact, and so may say it in other words: nothing of them is
    kept, not even as rejected. In a transaction that holds the owner's facts."""
    there = set(Fact.objects.filter(owner_id=owner_id).values_list("pk", flat=True))
    gone = {pk: fingerprint for pk, fingerprint in facts.items() if pk not in there}
    words, ids = set(gone.values()), {f"f:{pk}" for pk in gone}

    def speaks_of_it(item: Any) -> bool:
        said = item if isinstance(item, dict) else {}
        if fingerprint_of(_text(said, "text")) in words or _text(said, "replaces").strip() in ids:
            return True
        cited = list(_cited(said))
        messages = {pk for claim in cited for pk in claim.message_ids}
        return forgotten.taught_by(owner_id, messages, {c.generation_id for c in cited if c.generation_id is not None})

    return [item for item in items if not speaks_of_it(item)]


def store(run: ShadowRun, thread: Thread, items: Iterable[Any]) -> list[ShadowFactProposal]:
    """A row for each item, in the caller's transaction. The thread is locked against changes of its level, and is not
    isolated."""
    return [_store(run, thread, position, item) for position, item in enumerate(items)]


@dataclass
class _Checked:
    draft: FactDraft
    proofs: list[Proof]
    replaces: dict[str, int]


def _store(run: ShadowRun, thread: Thread, position: int, item: Any) -> ShadowFactProposal:
    try:
        # A refusal of the database's takes back this item's rows alone.
        with transaction.atomic():
            checked = _check(thread, item)
            return _valid(run, thread, position, item, checked)
    except FactRefused as refusal:
        error = str(refusal)
    except DatabaseError as refusal:
        error = f"The database refused it: {type(refusal).__name__}."
    return _rejected(run, thread, position, item, error)


def _check(thread: Thread, item: Any) -> _Checked:
    """Raises FactRefused with what does not hold."""
    problem = best_match(_ITEM.iter_errors(item))
    if problem is not None:
        place = ".".join(str(part) for part in problem.absolute_path)
        raise FactRefused(f"Not as the tool says{f', at {place}' if place else ''}: {head(problem.message, 300)}")
    draft = clean(
        FactDraft(
            text=item["text"],
            kind=item["kind"],
            aspect=item.get("aspect", ""),
            applies_to=item.get("applies_to", ""),
            tone=item["tone"],
        )
    )
    claims = [parse(raw) for raw in item["evidence"]]
    proofs = evidence.check(
        thread.owner_id, claims, kind=draft.kind, aspect=draft.aspect, tone=draft.tone, text=draft.text, thread=thread
    )
    for proof in proofs:
        for row in (proof.message, proof.accepted_by):
            if row is not None and row.copied_from_id is not None:
                raise FactRefused(f"message {row.pk} was copied from another conversation.")
    draft = dated(draft, proofs[0].said, thread.owner)
    check_no_secret(draft)
    return _Checked(draft, proofs, _replaced(thread, item.get("replaces")))


def _replaced(thread: Thread, value: str | None) -> dict[str, int]:
    """What an item replaces, as fields of its row. Raises FactRefused."""
    if value is None:
        return {}
    found = _REPLACES.fullmatch(value)
    if found is None:
        raise FactRefused("replaces is the id of a fact (f:) or of a proposal (p:) that was shown.")
    number = int(found.group(2))
    if found.group(1) == "f":
        if not visible_facts(Viewer.of_thread(thread)).filter(pk=number, status=Fact.Status.ACTIVE).exists():
            raise FactRefused(f"There is no fact {number} to replace.")
        return {"replaces_fact_id": number}
    if not ShadowFactProposal.objects.filter(pk=number, thread=thread, validation_error="").exists():
        raise FactRefused(f"There is no proposal {number} to replace.")
    return {"replaces_proposal_id": number}


def _valid(run: ShadowRun, thread: Thread, position: int, item: Any, checked: _Checked) -> ShadowFactProposal:
    draft = checked.draft
    proposal = ShadowFactProposal.objects.create(
        run=run,
        thread=thread,
        owner_id=thread.owner_id,
        position=position,
        text=draft.text,
        kind=draft.kind,
        aspect=draft.aspect,
        applies_to=draft.applies_to,
        tone=draft.tone,
        fingerprint=fingerprint_of(draft.text),
        raw=_raw(item),
        category=thread.category,
        **checked.replaces,
    )
    ShadowProposalEvidence.objects.bulk_create(
        ShadowProposalEvidence(
            proposal=proposal,
            owner_id=thread.owner_id,
            kind=proof.kind,
            message=proof.message,
            generation=proof.generation,
            accepted_by=proof.accepted_by,
        )
        for proof in checked.proofs
    )
    # Deferred rules speak now, while this item alone can be taken back.
    connection.check_constraints()
    return proposal


def _rejected(run: ShadowRun, thread: Thread, position: int, item: Any, error: str) -> ShadowFactProposal:
    said = item if isinstance(item, dict) else {}
    text = secrets.redact(" ".join(_text(said, "text").split()))[:RAW_MAX_CHARS]
    proposal = ShadowFactProposal.objects.create(
        run=run,
        thread=thread,
        owner_id=thread.owner_id,
        position=position,
        text=text,
        kind=_one_of(said, "kind", Fact.Kind.values),
        aspect=_one_of(said, "aspect", Fact.Aspect.values),
        applies_to=secrets.redact(_text(said, "applies_to"))[:RAW_MAX_CHARS],
        tone=_one_of(said, "tone", Fact.Tone.values),
        fingerprint=fingerprint_of(text) if text else "",
        validation_error=head(secrets.redact(error), ERROR_MAX_CHARS),
        raw=_raw(item),
        category=thread.category,
    )
    _keep_what_there_is(proposal, thread, said)
    return proposal


def _keep_what_there_is(proposal: ShadowFactProposal, thread: Thread, said: dict[str, Any]) -> None:
    """Those rows of the owner's that a rejected item cites and that there are, for whoever looks at it."""
    for claim in _cited(said):
        cited = claim.message_ids
        # Not of an island: words of one are seen nowhere else.
        open_threads = {"owner_id": thread.owner_id, "thread__scope": Thread.Scope.OPEN}
        if Message.objects.filter(pk__in=cited, **open_threads).count() < len(set(cited)):
            continue
        if (
            claim.generation_id is not None
            and not Generation.objects.filter(pk=claim.generation_id, **open_threads).exists()
        ):
            continue
        ShadowProposalEvidence.objects.bulk_create(
            [
                ShadowProposalEvidence(
                    proposal=proposal,
                    owner_id=thread.owner_id,
                    kind=claim.kind,
                    message_id=claim.message_id,
                    generation_id=claim.generation_id,
                    accepted_by_id=claim.accepted_by,
                )
            ],
            ignore_conflicts=True,
        )


def _cited(said: dict[str, Any]) -> Iterator[Claim]:
    """What an item cites, as far as it can be read."""
    rows = said.get("evidence")
    for raw in rows if isinstance(rows, list) else []:
        with contextlib.suppress(FactRefused):
            yield parse(raw)


def _raw(item: Any) -> Any:
    text = json.dumps(item, ensure_ascii=False)
    return secrets.redact_leaves(item if len(text) <= RAW_MAX_CHARS else head(text, RAW_MAX_CHARS))


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""


def _one_of(said: dict[str, Any], name: str, values: Sequence[str]) -> str:
    return said[name] if said.get(name) in values else ""
