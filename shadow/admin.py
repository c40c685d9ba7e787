"""Shadows for staff: runs and proposals, the queue of verdicts, and the comparison with the steward."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from llm.models import ModelCall
from maxclaw.admin_base import BigTableAdmin
from memory.admin_changes import staff_of
from shadow import admin_comparison, admin_review, attempts, cancelling, runs, triggers
from shadow.models import ProposalReview, ShadowFactProposal, ShadowRun
from threads.admin import PrivateTextAdmin
from threads.models import PrivateReading, Thread
from threads.private_reading import may_read

# Why a run waits, or came to nothing. What is not here is the name of an error.
WHY: dict[str, str | Promise] = {
    **dict(ModelCall.Outcome.choices),
    runs.NO_BUDGET: _("the budget for today is spent"),
    triggers.NO_MODEL: _("no model may read its category"),
    runs.Failure.FOREIGN_CALLS: _("the model called other tools"),
    runs.Failure.CUT: _("the answer was cut at the output limit"),
    runs.TOO_SLOW: _("the answer took too long"),
    runs.STOPPED: _("the server stopped"),
    attempts.LOST: _("its worker was lost"),
    cancelling.INTERRUPTED_BY_MAX: _("the person spoke"),
    cancelling.ISOLATED: _("the conversation was isolated"),
    cancelling.CATEGORY_CHANGED: _("the conversation's category changed"),
    cancelling.DELETED: _("the conversation was deleted"),
}


@admin.register(ShadowRun)
class ShadowRunAdmin(BigTableAdmin):
    """Runs of every owner, and what they come to beside the steward."""

    list_display = (
        "id",
        "created",
        "owner",
        "thread",
        "reason",
        "how",
        "model",
        "status",
        "why",
        "cache_read_tokens",
        "output_tokens",
        "cost",
        "duration_ms",
    )
    list_filter = ("status", "path", "path_reason", "reason", "model")
    search_fields = ("=id", "thread__channel", "owner__username")
    list_select_related = ("owner", "thread")

    @admin.display(description=_("path"), ordering="path")
    def how(self, run: ShadowRun) -> str:
        shown = (run.get_path_display(), run.get_path_reason_display())
        return ": ".join(str(part) for part in shown if part) or "–"

    @admin.display(description=_("why"), ordering="error")
    def why(self, run: ShadowRun) -> str:
        reason = str(WHY.get(run.error, run.error)) or "–"
        if run.not_before is None:
            return reason
        moment = date_format(localtime(run.not_before), "SHORT_DATETIME_FORMAT")
        return gettext("%(reason)s, until %(moment)s") % {"reason": reason, "moment": moment}

    def get_urls(self) -> list[URLPattern]:
        views = {
            "comparison/": (admin_comparison.comparison_view, "comparison"),
            "comparison/pair/": (admin_comparison.pair_view, "pair"),
        }
        pages = [
            path(address, self.admin_site.admin_view(self._bound(view)), name=f"shadow_shadowrun_{name}")
            for address, (view, name) in views.items()
        ]
        return [*pages, *super().get_urls()]

    def _bound(self, view: Any) -> Any:
        def bound(request: HttpRequest) -> HttpResponse:
            answer: HttpResponse = view(self, request)
            return answer

        return bound


@admin.register(ShadowFactProposal)
class ShadowFactProposalAdmin(PrivateTextAdmin, BigTableAdmin):
    """Proposals of every owner. Their words are private, and so is why one did not hold: that may repeat them."""

    private_fields = ("text", "applies_to", "validation_error", "raw", "fingerprint")
    what = PrivateReading.What.PROPOSAL
    list_display = ("id", "created", "owner", "thread", "sort", "tone", "held", "verdict", "run_path", "run_model")
    list_filter = ("kind", "aspect", "tone", "run__path", "run__model", "review__verdict")
    search_fields = ("=id", "thread__channel", "owner__username")
    list_select_related = ("owner", "thread", "run", "review")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ShadowFactProposal]:
        rows: QuerySet[ShadowFactProposal] = super().get_queryset(request)
        return rows.defer("text", "applies_to", "raw", "fingerprint")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.review_view)
        return [path("review/", view, name="shadow_shadowfactproposal_review"), *super().get_urls()]

    @admin.display(description=_("kind"), ordering="kind")
    def sort(self, proposal: ShadowFactProposal) -> str:
        return str(proposal.get_aspect_display() or proposal.get_kind_display()) or "–"

    @admin.display(description=_("held"), boolean=True)
    def held(self, proposal: ShadowFactProposal) -> bool:
        return not proposal.validation_error

    @admin.display(description=_("verdict"))
    def verdict(self, proposal: ShadowFactProposal) -> str:
        review = getattr(proposal, "review", None)
        return str(review.get_verdict_display()) if review else "–"

    @admin.display(description=_("path"), ordering="run__path")
    def run_path(self, proposal: ShadowFactProposal) -> str:
        return str(proposal.run.get_path_display())

    @admin.display(description=_("model"), ordering="run__model")
    def run_model(self, proposal: ShadowFactProposal) -> str:
        return proposal.run.model

    def review_view(self, request: HttpRequest) -> HttpResponse:
        """One proposal a page: a GET says what waits, each POST writes a verdict and shows the next."""
        staff = staff_of(request)
        if not self.has_view_permission(request) or not may_read(staff):
            raise PermissionDenied
        if not request.user.has_perm("shadow.add_proposalreview"):
            raise PermissionDenied
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": _("Judge proposals"),
            "opts": self.opts,
            "most": admin_review.SITTING,
            "choices": admin_review.CHOICES,
        }
        if request.method == "POST":
            which = request.POST.get("begin", "")
            sitting = admin_review.begin(which) if which else admin_review.went_on(request.POST, staff)
            context |= {
                "sitting": sitting,
                "verdicts": admin_review.verdicts(),
                "note_max": admin_review.NOTE_MAX_CHARS,
            }
            if not sitting.over:
                context |= admin_review.read_proposal(staff, sitting.ids[sitting.place])
        return TemplateResponse(
            request, "admin/console/review.html", {**context, "waiting": admin_review.waiting().count()}
        )


@admin.register(ProposalReview)
class ProposalReviewAdmin(PrivateTextAdmin, BigTableAdmin):
    """Verdicts. A note may repeat what was proposed, so it is private."""

    private_fields = ("note",)
    what = PrivateReading.What.PROPOSAL
    list_display = ("id", "created", "proposal", "owner", "verdict", "reviewer")
    list_filter = ("verdict",)
    search_fields = ("=id", "owner__username", "reviewer__username")
    list_select_related = ("owner", "reviewer", "proposal")

    def thread_of(self, row: ProposalReview) -> Thread:
        thread: Thread = row.proposal.thread
        return thread
