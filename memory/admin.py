"""The memory console: what is remembered of whom, on what it rests, who uses it; and staff's hand on it.

What is remembered and why something was done to it are private text: it is read as such. Whoever changes a fact says
why, and the log keeps it.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.postgres.expressions import ArraySubquery
from django.core.exceptions import PermissionDenied
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import formats, timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from maxclaw.admin_base import BigTableAdmin
from maxclaw.admin_charts import stacked_bars, stacked_options
from maxclaw.admin_figures import Figure, figures
from memory import admin_changes as changes
from memory import admin_filters as filters
from memory import admin_reading as reading
from memory.admin_changes import staff_of
from memory.forms import StaffCorrectionForm, as_it_reads
from memory.models import Episode, Fact, FactEvidence, FactLog, FactUse
from memory.standing import is_stale
from memory.statistics import Statistics, standing, statistics
from threads.admin import PrivateTextAdmin
from threads.models import PrivateReading
from threads.private_reading import may_read

PERIODS = (7, 30, 90)
SHOWN_USES = 20
SHOWN_AT_ONCE = 50
What = PrivateReading.What


@admin.register(Fact)
class FactAdmin(PrivateTextAdmin, BigTableAdmin):
    """Facts of every owner. Their words, and what is typed about them, are private."""

    private_fields = ("text", "applies_to", "project", "why", "graduated_rule", "fingerprint")
    what = What.FACT
    change_form_outer_after_template = "admin/console/fact_actions.html"
    actions = ("read_chosen", "merge_chosen")
    list_display = (
        "id",
        "owner",
        "sort",
        "tone",
        "status",
        "evidence_kinds",
        "used",
        "writer",
        "level",
        "created",
    )
    list_filter = (
        filters.Owner,
        "kind",
        "aspect",
        "tone",
        "status",
        filters.EvidenceKind,
        filters.Use,
        filters.Stale,
        "writer",
        "legacy",
        "scope",
    )
    list_filter_submit = True
    search_fields = ("=id", "owner__username")
    list_select_related = ("owner",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        hidden = {*self.private_fields, "embedding", "superseded_by"}
        return [field.name for field in self.opts.concrete_fields if field.name not in hidden]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Fact]:
        rows: QuerySet[Fact] = super().get_queryset(request)
        kinds = FactEvidence.objects.filter(fact_id=OuterRef("pk")).order_by("kind").values("kind").distinct()
        uses = FactUse.objects.filter(fact_id=OuterRef("pk")).order_by().values("fact_id").annotate(number=Count("pk"))
        return rows.defer("embedding", *self.private_fields).annotate(
            kinds_of_evidence=ArraySubquery(kinds), use_count=Coalesce(Subquery(uses.values("number")), 0)
        )

    def get_urls(self) -> list[URLPattern]:
        pages = [
            path("overview/", self.admin_site.admin_view(self.overview), name="memory_fact_overview"),
            path("merge/", self.admin_site.admin_view(self.merge_view), name="memory_fact_merge"),
        ]
        for name in changes.ACTIONS:
            view = self.admin_site.admin_view(partial(self.change_fact, action=name))
            pages.append(path(f"<path:object_id>/{name}/", view, name=f"memory_fact_{name}"))
        return [*pages, *super().get_urls()]

    def thread_of(self, row: Any) -> None:
        """A fact may rest on several conversations, or on none that is still here."""

    @admin.display(description=_("kind"), ordering="kind")
    def sort(self, fact: Fact) -> str:
        return str(fact.get_aspect_display() or fact.get_kind_display())

    @admin.display(description=_("evidence"))
    def evidence_kinds(self, fact: Any) -> str:
        return ", ".join(str(FactEvidence.Kind(kind).label) for kind in fact.kinds_of_evidence) or "–"

    @admin.display(description=_("level"))
    def level(self, fact: Fact) -> str:
        return f"{fact.get_scope_display()}, {fact.category}" if fact.category else str(fact.get_scope_display())

    @admin.display(description=_("used"))
    def used(self, fact: Any) -> int:
        return int(fact.use_count)

    # A fact's page

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        fact = kwargs.get("obj")
        if fact is not None:
            uses = FactUse.objects.filter(fact_id=fact.pk)
            context |= {
                "fact": fact,
                "is_stale": is_stale(fact),
                "evidence": reading.evidence_of(fact)[: reading.SHOWN_PROOFS],
                "older": fact.supersedes.order_by("-pk").values_list("pk", flat=True)[: reading.SHOWN_VERSIONS],
                "uses": uses.select_related("generation__thread", "message__thread")
                .defer("message__text", "message__wire", "message__search_text", "generation__opening")
                .order_by("-pk")[:SHOWN_USES],
                "log": reading.log_of(fact)[: reading.SHOWN_LOG],
                **changes.offered(request, fact),
            }
        return super().render_change_form(request, context, *args, **kwargs)

    def read_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The fact's words, its versions, and its evidence in its surroundings, once it is noted who reads them."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        fact = self.readable(request, object_id)
        read = reading.read_fact(staff_of(request), fact)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Private text"),
            "opts": self.opts,
            **read,
            **changes.offered(request, fact),
            "form": StaffCorrectionForm(initial=as_it_reads(read["fact"])),
        }
        return TemplateResponse(request, "admin/console/fact_text.html", context)

    def readable(self, request: HttpRequest, object_id: str) -> Fact:
        """The fact, for those who may read it. Raises Http404 and PermissionDenied."""
        fact: Fact | None = self.get_object(request, object_id)
        if fact is None:
            raise Http404
        if not self.has_view_permission(request, fact) or not may_read(staff_of(request)):
            raise PermissionDenied
        return fact

    # What is done to facts

    def change_fact(self, request: HttpRequest, object_id: str, action: str) -> HttpResponse:
        """Retire, restore or correct one fact: a POST, with a reason."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        fact: Fact | None = self.get_object(request, object_id)
        if fact is None:
            raise Http404
        return changes.change(self, request, fact, action)

    def merge_view(self, request: HttpRequest) -> HttpResponse:
        """Merge the facts that were chosen in the list: a POST, with the words that are left and a reason."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        chosen = self.get_queryset(request).filter(pk__in=changes.chosen_ids(request))
        return changes.merge(self, request, list(chosen.order_by("pk")))

    def has_read_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request) and may_read(staff_of(request))

    def has_merge_permission(self, request: HttpRequest) -> bool:
        return self.has_read_permission(request) and request.user.has_perm(changes.PERMISSION)

    @admin.action(description=_("Read the words of the chosen"), permissions=["read"])
    def read_chosen(self, request: HttpRequest, queryset: QuerySet[Fact]) -> HttpResponse:
        facts = list(queryset.select_related("owner")[:SHOWN_AT_ONCE])
        reading.note_facts(staff_of(request), facts)
        words = reading.words_of(facts)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Private text"),
            "opts": self.opts,
            "facts": words,
            "most": SHOWN_AT_ONCE if len(facts) == SHOWN_AT_ONCE else None,
        }
        return TemplateResponse(request, "admin/console/facts_text.html", context)

    @admin.action(description=_("Merge the chosen…"), permissions=["merge"])
    def merge_chosen(self, request: HttpRequest, queryset: QuerySet[Fact]) -> HttpResponse | None:
        return changes.ask_to_merge(self, request, list(queryset.order_by("pk")[: SHOWN_AT_ONCE + 1]))

    # Charts

    def overview(self, request: HttpRequest) -> HttpResponse:
        """How much was read, how the memory grows, what it rests on, what nobody uses."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        days = next((days for days in PERIODS if str(days) == request.GET.get("days")), 30)
        found = statistics(days, timezone.get_current_timezone())
        context = {
            **self.admin_site.each_context(request),
            "title": _("Memory"),
            "days": days,
            "periods": PERIODS,
            "found": found,
            "charts": charts(found),
            "figures": [coverage(found), *memory_figures(request)],
            "standing": [(Fact.Kind(kind).label, row) for kind, row in found.standing.items()],
            "mix": [(FactEvidence.Kind(kind).label, number) for kind, number in found.evidence.items()],
        }
        return TemplateResponse(request, "admin/console/memory.html", context)


def coverage(found: Statistics) -> Figure:
    """The share of what people said that was digested; a dash where nothing was said."""
    share = "–" if found.coverage is None else f"{100 * found.coverage:.0f} %"
    return Figure(_("Digested"), share, hint=_("of what people said in these days"))


def charts(found: Statistics) -> list[tuple[str, str, str, str]]:
    """(id, heading, Chart.js data, Chart.js options) of each chart."""
    days = [formats.date_format(day, "MONTH_DAY_FORMAT") for day in found.days]
    kinds = {kind: str(Fact.Kind(kind).label) for kind in found.written}
    read = {
        gettext("digested"): [found.read[day] for day in found.days],
        gettext("not digested"): [found.waiting[day] for day in found.days],
    }
    written = {kinds[kind]: [by_day[day] for day in found.days] for kind, by_day in found.written.items()}
    proofs = [FactEvidence.Kind(kind).label for kind in found.evidence]
    evidence = {gettext("pieces of evidence"): list(found.evidence.values())}
    use = {
        gettext("used"): [row.used for row in found.standing.values()],
        gettext("unused"): [row.unused for row in found.standing.values()],
    }
    standing, lying = stacked_options(whole=True), stacked_options(whole=True, lying=True)
    return [
        ("coverage", gettext("What people said, by day"), stacked_bars(days, read), standing),
        ("growth", gettext("Facts written, by day"), stacked_bars(days, written), standing),
        ("mix", gettext("What active facts rest on"), stacked_bars(proofs, evidence), lying),
        ("use", gettext("Active facts by use"), stacked_bars([kinds[kind] for kind in found.standing], use), lying),
    ]


@admin.register(FactLog)
class FactLogAdmin(PrivateTextAdmin, BigTableAdmin):
    """What was done to facts, by whom. Why is private: a reason may repeat what is remembered."""

    private_fields = ("reason",)
    what = What.FACT_LOG
    list_display = ("id", "created", "owner", "action", "writer", "actor", "before", "after")
    list_filter = ("action", "writer")
    search_fields = ("=id", "owner__username", "actor__username")
    list_select_related = ("owner", "actor")

    def get_queryset(self, request: HttpRequest) -> QuerySet[FactLog]:
        rows: QuerySet[FactLog] = super().get_queryset(request)
        return rows.defer("reason")

    def thread_of(self, row: Any) -> None:
        """It is of facts, not of a conversation."""


@admin.register(Episode)
class EpisodeAdmin(BigTableAdmin):
    """Readings of conversations for the memory."""

    list_display = ("id", "created", "owner", "thread", "generation", "through_seq", "outcome")
    list_filter = ("outcome",)
    search_fields = ("=id", "thread__channel", "owner__username")
    list_select_related = ("owner", "thread", "generation")


@figures(_("Memory"), place=40, permissions=("memory.view_fact",))
def memory_figures(request: HttpRequest) -> Iterable[Figure]:
    """How much is remembered, and how much of it nobody uses."""
    listed = reverse("admin:memory_fact_changelist")
    rows = standing().values()
    active = sum(row.used + row.unused for row in rows)
    unused, stale = sum(row.unused for row in rows), sum(row.stale for row in rows)
    yield Figure(_("Active facts"), active, url=f"{listed}?status__exact=active")
    yield Figure(_("Never used"), unused, url=f"{listed}?status__exact=active&use=none")
    yield Figure(
        _("Stale"),
        stale,
        hint=_("rests on rewound words alone; briefs nobody"),
        url=f"{listed}?status__exact=active&stale=yes",
    )
