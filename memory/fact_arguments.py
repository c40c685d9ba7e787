"""A fact as the arguments of a model's tool call: the schema that every writing tool shares, and the way back."""

import re
from collections.abc import Mapping
from typing import Any

from memory.claims import Claim, parse
from memory.fact_drafts import APPLIES_TO_MAX_CHARS, PROJECT_MAX_CHARS, TEXT_MAX_CHARS, FactDraft
from memory.models import Fact, FactEvidence
from memory.refusals import FactRefused

ID = {"type": ["integer", "string"]}
EVIDENCE = {
    "type": "array",
    "minItems": 1,
    "maxItems": 8,
    "items": {
        "type": "object",
        "properties": {
            "kind": {"enum": list(FactEvidence.Kind.values)},
            "message_id": ID | {"description": "the id of the row that proves it"},
            "generation_id": {"type": "integer", "description": "observed-outcome alone: a generation that has ended"},
            "accepted_by": ID | {"description": "max-accepted alone: the person's first answer to it, which accepts"},
        },
        "required": ["kind"],
        "additionalProperties": False,
    },
}
FACT: dict[str, Any] = {
    "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": TEXT_MAX_CHARS,
        "description": "one fact in one sentence that stands by itself, in the language of the person",
    },
    "kind": {"enum": list(Fact.Kind.values)},
    "aspect": {"enum": list(Fact.Aspect.values), "description": "of kind about-user alone"},
    "applies_to": {
        "type": "string",
        "maxLength": APPLIES_TO_MAX_CHARS,
        "description": "what it applies to, in a few words that are the same each time; leave out: in general",
    },
    "tone": {"enum": list(Fact.Tone.values)},
    "project": {
        "type": "string",
        "maxLength": PROJECT_MAX_CHARS,
        "description": "the project, for the person's decisions, preferences, rules and corrections about one",
    },
}
FACT_REQUIRED = ["text", "kind", "tone"]
_TAG = re.compile(r"\s*(?:f:)?(\d{1,18})\s*")


def draft_of(arguments: Mapping[str, Any]) -> FactDraft:
    """The fact in arguments that fit the schema."""
    return FactDraft(**{name: arguments[name] for name in FACT if name in arguments})


def claims_of(arguments: Mapping[str, Any]) -> list[Claim]:
    """The evidence in arguments. Raises EvidenceRefused."""
    return [parse(raw) for raw in arguments.get("evidence", ())]


def fact_id_of(value: Any) -> int:
    """The id of a fact, which models copy with the tag of its line. Raises FactRefused."""
    found = _TAG.fullmatch(str(value))
    if found is None:
        raise FactRefused("fact_id is the number of a fact that you were shown.")
    return int(found.group(1))
