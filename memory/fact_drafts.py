"""What a writer wants remembered, cleaned and checked before any row is looked at."""

import hashlib
import unicodedata
from dataclasses import dataclass, replace
from datetime import datetime

from accounts.models import User
from maxclaw.text import visible
from memory import dates, secrets
from memory.dates import Said
from memory.models import Fact
from memory.refusals import FactRefused

TEXT_MAX_CHARS = 1_000
APPLIES_TO_MAX_CHARS = 200
PROJECT_MAX_CHARS = 200


@dataclass(frozen=True)
class FactDraft:
    """What a writer wants remembered. `aspect` belongs to the kind about-user alone."""

    text: str
    kind: str
    aspect: str = ""
    applies_to: str = ""
    tone: str = Fact.Tone.REMARK
    project: str = ""


def fingerprint_of(text: str) -> str:
    """The same for the same words however they are written: width, case, white space and punctuation aside."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # What words are made of; of signs alone, the signs.
    words = "".join(sign for sign in folded if unicodedata.category(sign)[0] in "LMNS") or folded.strip()
    return hashlib.sha256(words.encode()).hexdigest()


def clean(draft: FactDraft) -> FactDraft:
    """The draft in one line each, checked. Raises FactRefused."""
    text, applies_to, project = (
        " ".join(visible(part).split()) for part in (draft.text, draft.applies_to, draft.project)
    )
    if not any(unicodedata.category(sign)[0] in "LN" for sign in text):
        raise FactRefused("A fact needs words.")
    for name, value, limit in (
        ("text", text, TEXT_MAX_CHARS),
        ("applies_to", applies_to, APPLIES_TO_MAX_CHARS),
        ("project", project, PROJECT_MAX_CHARS),
    ):
        if len(value) > limit:
            raise FactRefused(f"{name} has {len(value):,} characters, at most {limit:,} are kept: one fact, in short.")
    if draft.kind not in Fact.Kind.values:
        raise FactRefused(f"The kind of a fact is one of {', '.join(Fact.Kind.values)}.")
    if draft.tone not in Fact.Tone.values:
        raise FactRefused(f"The tone of a fact is one of {', '.join(Fact.Tone.values)}.")
    if draft.kind == Fact.Kind.ABOUT_USER and draft.aspect not in Fact.Aspect.values:
        raise FactRefused(f"A fact about the person has an aspect, one of {', '.join(Fact.Aspect.values)}.")
    if draft.kind != Fact.Kind.ABOUT_USER and draft.aspect:
        raise FactRefused("Only a fact about the person has an aspect.")
    return replace(draft, text=text, applies_to=applies_to, project=project)


def dated(draft: FactDraft, said: datetime | Said, owner: User) -> FactDraft:
    """The draft with its relative times as dates, seen from when its words were said (aware). Raises FactRefused for
    one that may be several dates."""
    zone = owner.zone
    try:
        return replace(
            draft,
            text=dates.absolute(draft.text, said, zone),
            applies_to=dates.absolute(draft.applies_to, said, zone),
        )
    except dates.Ambiguous as ambiguous:
        raise FactRefused(
            f"“{ambiguous.expression}” may be {' or '.join(ambiguous.dates)}, as the evidence is of several times: "
            "write the date."
        ) from None


def check_no_secret(draft: FactDraft) -> None:
    if kinds := secrets.kinds_in("\n".join((draft.text, draft.applies_to, draft.project))):
        raise FactRefused(f"Secrets are not remembered, and this holds one ({', '.join(kinds)}). Leave it out.")
