"""Model calls and their headers in the console: to read, never to change; and what they cost."""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import formats, timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from llm import budgets
from llm.catalog import emulator_in_use
from llm.costs import Costs, Sums, costs
from llm.models import ModelCall, RequestHeader
from maxclaw.admin_base import BigTableAdmin
from maxclaw.admin_charts import stacked_bars, stacked_options
from maxclaw.admin_figures import Figure, figures

PERIODS = (7, 30, 90)
SPLITS = {"model": _("by model"), "purpose": _("by purpose")}


@admin.register(ModelCall)
class ModelCallAdmin(BigTableAdmin):
    list_display = [
        "id",
        "started",
        "purpose",
        "owner",
        "model",
        "outcome",
        "prompt_tokens",
        "cache_read_share",
        "output_tokens",
        "dollars",
        "first_token_ms",
        "total_ms",
    ]
    list_filter = ["purpose", "outcome", "model", ("started", admin.DateFieldListFilter)]
    linked_lookups = ("thread_id",)
    list_select_related = ["owner"]
    search_fields = ["=thread_id", "=generation_id", "=request_id", "owner__username"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.costs_view)
        return [path("costs/", view, name="llm_modelcall_costs"), *super().get_urls()]

    def costs_view(self, request: HttpRequest) -> HttpResponse:
        """Charts and tables of what calls cost, by day, model and purpose."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        days = _chosen(request.GET.get("days"), PERIODS, 30)
        by = request.GET.get("by") if request.GET.get("by") in SPLITS else "model"
        found = costs(days, timezone.get_current_timezone(), str(by))
        context = {
            **self.admin_site.each_context(request),
            "title": _("Costs"),
            "days": days,
            "by": by,
            "periods": PERIODS,
            "splits": SPLITS,
            "named": [(name_of(str(by), name), sums) for name, sums in found.by_name.items()],
            "daily": [(day, _of_day(found, day)) for day in reversed(found.days) if found.by_day[day]],
            "total": found.total,
            "dollars_chart": chart(found, str(by), lambda sums: float(sums.dollars)),
            "tokens_chart": chart(found, str(by), lambda sums: sums.tokens),
            "chart_options": stacked_options(),
        }
        return TemplateResponse(request, "admin/console/costs.html", context)

    @admin.display(description=_("prompt"))
    def prompt_tokens(self, call: ModelCall) -> int | None:
        """The whole prompt, None where the server told nothing."""
        return prompt_of(call)

    @admin.display(description=_("from the cache"))
    def cache_read_share(self, call: ModelCall) -> str:
        prompt = prompt_of(call)
        return f"{100 * (call.cache_read_tokens or 0) / prompt:.0f} %" if prompt else "–"

    @admin.display(description=_("dollars"), ordering="cost")
    def dollars(self, call: ModelCall) -> str:
        """What it cost by list price; that no price is known is said, not left blank."""
        if call.cost is not None:
            return f"{call.cost:.4f}"
        return gettext("price unknown") if call.input_tokens is not None else "–"


def prompt_of(call: ModelCall) -> int | None:
    """Prompt tokens of a stored call, however they were billed."""
    if call.input_tokens is None:
        return None
    cached = (call.cache_read_tokens, call.cache_write_5m_tokens, call.cache_write_1h_tokens)
    return call.input_tokens + sum(count or 0 for count in cached)


@admin.register(RequestHeader)
class RequestHeaderAdmin(BigTableAdmin):
    list_display = ["sha256", "created"]
    search_fields = ["sha256"]
    ordering = ["-created"]


def name_of(by: str, name: str) -> str:
    """What people call a model or a purpose."""
    return str(ModelCall.Purpose(name).label) if by == "purpose" and name in ModelCall.Purpose else name


def chart(found: Costs, by: str, measure: Callable[[Sums], float]) -> str:
    """Chart.js data: one stack of bars a day, one colour a name."""
    labels = [formats.date_format(day, "MONTH_DAY_FORMAT") for day in found.days]
    return stacked_bars(
        labels,
        {
            name_of(by, name): [measure(found.by_day[day].get(name, Sums())) for day in found.days]
            for name in found.by_name
        },
    )


def _of_day(found: Costs, day: date) -> Sums:
    whole = Sums()
    for sums in found.by_day[day].values():
        whole.add(sums)
    return whole


def _chosen(value: Any, choices: tuple[int, ...], default: int) -> int:
    return int(value) if value in map(str, choices) else default


@figures(_("Models"), place=20, permissions=("llm.view_modelcall",))
def model_figures(request: HttpRequest) -> Iterable[Figure]:
    """What calls took today and lately, and what is left of the server's day."""
    listed, charts = reverse("admin:llm_modelcall_changelist"), reverse("admin:llm_modelcall_costs")
    zone = timezone.get_current_timezone()
    today, week = costs(1, zone, "model").total, costs(7, zone, "model").total
    yield Figure(
        _("Who answers"),
        _("Emulator") if emulator_in_use() else _("Model"),
        hint=_("No model is configured.") if emulator_in_use() else "",
        alarm=emulator_in_use(),
    )
    yield Figure(_("Calls today"), today.calls, url=listed)
    yield Figure(_("Dollars today"), dollars(today), hint=price_hint(today), url=charts)
    yield Figure(_("Dollars in 7 days"), dollars(week), hint=price_hint(week), url=charts)
    yield Figure(_("Tokens in 7 days"), week.tokens, url=charts)
    spent = budgets.spent_today(None)
    share = 100 * spent.tokens / settings.BUDGET_SERVER_TOKENS if settings.BUDGET_SERVER_TOKENS else 100.0
    yield Figure(
        _("Background budget used"),
        f"{share:.0f} %",
        hint=_("tokens of the server’s day, in UTC"),
        alarm=share >= 90,
    )


def dollars(sums: Sums) -> str:
    """Dollars of the calls with a known price; a dash when no call had one."""
    return "–" if sums.calls and sums.unpriced + sums.untold == sums.calls else f"{sums.dollars:.2f}"


def price_hint(sums: Sums) -> str:
    """That some calls have no known price, if so."""
    return gettext("without %(count)d calls of unknown price") % {"count": sums.unpriced} if sums.unpriced else ""
