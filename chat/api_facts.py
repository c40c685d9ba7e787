"""The REST API, continued: what is remembered of a person, and what they do about it."""

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from agent.refusals import Refused
from chat import api_fact_shapes as shapes
from chat import remembering
from chat.api import NOT_FOUND, REFUSED, Endpoint
from chat.api_shapes import ErrorShape
from memory.forms import CorrectionForm, as_it_reads
from memory.models import Fact
from memory.remembered import Remembered, remembered, with_proofs

COLUMNS = (
    "text",
    "kind",
    "aspect",
    "applies_to",
    "tone",
    "project",
    "scope",
    "category",
    "status",
    "writer",
    "created",
)


def fact_view(found: Remembered) -> dict[str, Any]:
    """A fact as the API shows it."""
    fact = found.fact
    return {
        "id": fact.pk,
        **{name: getattr(fact, name) for name in COLUMNS},
        "said": found.said,
        "superseded_by": fact.superseded_by_id,
        "evidence": [asdict(proof) for proof in found.proofs],
    }


class OfFact(Endpoint):
    """What has to do with one fact."""

    def answer(self, fact: Fact) -> Response:
        [found] = with_proofs(self.user, [fact])
        return Response(fact_view(found))


class FactList(Endpoint):
    """One's memory."""

    @extend_schema(
        operation_id="facts_list",
        parameters=[shapes.FactsQuery],
        responses={200: shapes.FactPageShape, **NOT_FOUND},
    )
    def get(self, request: Request) -> Response:
        """What is remembered, with what proves it, newest first; of every conversation, the isolated ones too."""
        asked = self.checked(shapes.FactsQuery, request.query_params)
        page = remembered(self.user, query=asked.pop("q"), **asked)
        return Response({"facts": list(map(fact_view, page.facts)), "next_before": page.next_before})


class FactDetail(OfFact):
    """One fact."""

    @extend_schema(operation_id="facts_retrieve", responses={200: shapes.FactShape, **NOT_FOUND})
    def get(self, request: Request, fact: int) -> Response:
        """The fact with what proves it."""
        return self.answer(remembering.own_fact(self.user, fact))


class FactCorrect(OfFact):
    """Putting a fact right."""

    @extend_schema(request=shapes.Correction, responses={200: shapes.FactShape, 400: ErrorShape, **REFUSED})
    def post(self, request: Request, fact: int) -> Response:
        """Correct it: the answer is the fact that stands in its place."""
        old = remembering.own_fact(self.user, fact)
        typed = {**as_it_reads(old), **self.checked(shapes.Correction, request.data)}
        form = CorrectionForm(typed)
        if not form.is_valid():
            raise Refused("bad-fact", " ".join(str(error) for errors in form.errors.values() for error in errors))
        return self.answer(remembering.correct(self.user, old, form.cleaned_data))


class FactSetAside(OfFact):
    """Using a fact no more."""

    @extend_schema(request=None, responses={200: shapes.FactShape, **REFUSED})
    def post(self, request: Request, fact: int) -> Response:
        """Set it aside: it is given to no conversation until it is brought back."""
        return self.answer(remembering.set_aside(self.user, remembering.own_fact(self.user, fact)))


class FactBringBack(OfFact):
    """Using a fact again."""

    @extend_schema(request=None, responses={200: shapes.FactShape, **REFUSED})
    def post(self, request: Request, fact: int) -> Response:
        """Bring back what was set aside or replaced: the answer is the fact that counts now."""
        return self.answer(remembering.bring_back(self.user, remembering.own_fact(self.user, fact)))


class FactForget(Endpoint):
    """Forgetting a fact."""

    @extend_schema(request=None, responses={200: shapes.ForgottenShape, **REFUSED})
    def post(self, request: Request, fact: int) -> Response:
        """Forget it for good, its earlier versions too: out of the memory and of what conversations are given. The
        answer says where its words stay, frozen in conversations."""
        return Response(asdict(remembering.forget(self.user, remembering.own_fact(self.user, fact))))
