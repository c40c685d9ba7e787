"""What staff leave out of the list of facts."""

from typing import Any

from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import TextFilter

from memory.models import Fact, FactEvidence, FactUse
from memory.standing import fresh_facts, stale_facts
from memory.statistics import used

Choices = list[tuple[str, Any]]


class Owner(TextFilter):
    """Whose: the name, as its owner signs in. A list of all names would be as long as the server is large."""

    title = _("owner")
    parameter_name = "owner"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Fact]) -> QuerySet[Fact]:
        return queryset.filter(owner__username=self.value()) if self.value() else queryset


class EvidenceKind(admin.SimpleListFilter):
    title = _("evidence")
    parameter_name = "evidence"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [*FactEvidence.Kind.choices, ("none", _("none"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Fact]) -> QuerySet[Fact]:
        rows = FactEvidence.objects.filter(fact_id=OuterRef("pk"))
        if self.value() == "none":
            return queryset.filter(~Exists(rows))
        return queryset.filter(Exists(rows.filter(kind=self.value()))) if self.value() else queryset


class Use(admin.SimpleListFilter):
    title = _("use")
    parameter_name = "use"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [*FactUse.How.choices, ("none", _("unused"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Fact]) -> QuerySet[Fact]:
        if self.value() == "none":
            return queryset.filter(~used())
        rows = FactUse.objects.filter(fact_id=OuterRef("pk"), how=self.value())
        return queryset.filter(Exists(rows)) if self.value() else queryset


class Stale(admin.SimpleListFilter):
    """Whether a fact rests on rewound words alone: then nobody is briefed with it."""

    title = _("stale")
    parameter_name = "stale"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        return [("yes", _("rests on rewound words alone")), ("no", _("rests on words that stand"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Fact]) -> QuerySet[Fact]:
        if self.value() == "yes":
            return stale_facts(queryset)
        return fresh_facts(queryset) if self.value() == "no" else queryset
