"""What a writer of facts cites as evidence, and the one parser of it that every writer shares."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memory.models import FactEvidence
from memory.refusals import EvidenceRefused

Kind = FactEvidence.Kind
KEYS = {"kind", "message_id", "generation_id", "accepted_by"}
# The largest id that the database holds.
ID_MAX = 2**63 - 1


@dataclass(frozen=True)
class Claim:
    """What a writer cites: exactly one of a message and a generation, and with `max-accepted` where it was accepted."""

    kind: Kind
    message_id: int | None = None
    generation_id: int | None = None
    accepted_by: int | None = None

    @property
    def message_ids(self) -> list[int]:
        """The messages that it names."""
        return [pk for pk in (self.message_id, self.accepted_by) if pk is not None]

    def __str__(self) -> str:
        return f"message {self.message_id}" if self.generation_id is None else f"generation {self.generation_id}"


def parse(raw: Mapping[str, Any]) -> Claim:
    """A claim as a model writes it. The tag `m:` of rendered rows is taken off message ids here, and nowhere else.
    Raises EvidenceRefused."""
    if not isinstance(raw, Mapping):
        raise EvidenceRefused("Each piece of evidence is an object with a kind and one message_id or generation_id.")
    if unknown := sorted(set(map(str, raw)) - KEYS):
        raise EvidenceRefused(f"Evidence has no {', '.join(unknown)}: it has {', '.join(sorted(KEYS))}.")
    if raw.get("kind") not in Kind.values:
        raise EvidenceRefused(f"The kind of evidence is one of {', '.join(Kind.values)}.")
    claim = Claim(
        kind=Kind(raw["kind"]),
        message_id=_id(raw, "message_id", tagged=True),
        generation_id=_id(raw, "generation_id", tagged=False),
        accepted_by=_id(raw, "accepted_by", tagged=True),
    )
    check_form(claim)
    return claim


def check_form(claim: Claim) -> None:
    """Raises EvidenceRefused where a claim names too much or too little for its kind."""
    if (claim.message_id is None) == (claim.generation_id is None):
        raise EvidenceRefused("Each piece of evidence names exactly one of message_id and generation_id.")
    if claim.generation_id is not None and claim.kind != Kind.OBSERVED_OUTCOME:
        raise EvidenceRefused("A whole generation is evidence of the kind observed-outcome only.")
    if (claim.kind == Kind.MAX_ACCEPTED) != (claim.accepted_by is not None):
        raise EvidenceRefused("max-accepted, and nothing else, names in accepted_by where the person accepts.")


def _id(raw: Mapping[str, Any], key: str, *, tagged: bool) -> int | None:
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, str):
        value = value.strip()
        value = value.removeprefix("m:") if tagged else value
        if not (value.isascii() and value.isdecimal() and len(value) <= len(str(ID_MAX))):
            raise EvidenceRefused(f"{key} is a whole number, the id of a row that you were shown.")
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= ID_MAX:
        raise EvidenceRefused(f"{key} is a whole number, the id of a row that you were shown.")
    return value
