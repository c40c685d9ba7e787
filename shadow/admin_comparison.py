"""The comparison as a page: charts and tables, each pair with its words for those who may read them, CSV and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_lazy as _

from llm.models import ModelCall
from maxclaw.admin_charts import stacked_bars, stacked_options
from memory.admin_changes import staff_of
from memory.admin_reading import evidence_of, note_facts, read_proofs, words_of
from memory.models import Fact, FactEvidence
from shadow import comparison_output, comparison_report, pairing
from shadow.admin_review import read_proposal
from shadow.comparison import Examined, Matched, PairingRefused
from shadow.comparison_evidence import UNREADABLE
from shadow.comparison_reading import DAYS, LIVE, OTHER_CALLS, STEWARD, STEWARD_ON_MAIN, last_week
from shadow.comparison_report import DISCLAIMERS, Report
from shadow.models import ShadowFactProposal, ShadowRun
from threads.models import Generation
from threads.private_reading import may_read

PERIODS = (DAYS, 30, 90)
# Pairs on one page of a measure.
PAIRS_SHOWN = 200
FORMATS = {
    "json": (comparison_output.to_json, "application/json"),
    "csv": (comparison_output.to_csv, "text/csv; charset=utf-8"),
}
PATHS: dict[str, str | Promise] = {
    **dict(ShadowRun.Path.choices),
    STEWARD: _("steward"),
    STEWARD_ON_MAIN: _("steward, on main conversations"),
    OTHER_CALLS: _("repeated calls of shadows"),
}
# Of runs, and of calls that stand alone.
STATUSES: dict[str, str | Promise] = {**dict(ModelCall.Outcome.choices), **dict(ShadowRun.Status.choices)}
WELL = (ShadowRun.Status.COMPLETED, ModelCall.Outcome.COMPLETE)
JUDGE_PERMISSION = "shadow.add_proposalreview"


def comparison_view(console: Any, request: HttpRequest) -> HttpResponse:
    """The report of the last days. A POST lets a light model pair by meaning first."""
    if not console.has_view_permission(request):
        raise PermissionDenied
    days = next((days for days in PERIODS if str(days) == request.GET.get("days")), DAYS)
    found = comparison_report.report(last_week(days))
    if request.method == "POST":
        if not request.user.has_perm(JUDGE_PERMISSION):
            raise PermissionDenied
        found = _judged(request, found)
    wanted = request.POST.get("format") or request.GET.get("format")
    if wanted in FORMATS:
        write, kind = FORMATS[wanted]
        name = f"comparison-{found.window.first}-{found.window.last}.{wanted}"
        return HttpResponse(
            write(found), content_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )
    context = {
        **console.admin_site.each_context(request),
        "title": _("Shadows beside the steward"),
        "opts": console.opts,
        "found": found,
        "days": days,
        "periods": PERIODS,
        "disclaimers": DISCLAIMERS,
        "charts": charts(found),
        "measures": [_with_pairs(request, *measure) for measure in measures(found)],
        "examined": [
            (PATHS.get(reader, _("shadow")), way_name(way), row)
            for reader, ways in found.examined.items()
            for way, row in ways.items()
        ],
        "costs": [(path_name(row.path), status_name(row.status), row) for row in found.costs],
        "waste": [(path_name(row.path), row) for row in found.waste],
        "latencies": [(path_name(row.path), row) for row in found.latencies],
        "pointers": [(path_name(row.path), kind_name(row.kind), row) for row in found.pointers],
        "proposed": [(path_name(row.path), row) for row in found.proposed],
        "may_judge": request.user.has_perm(JUDGE_PERMISSION),
        "may_read": may_read(staff_of(request)),
    }
    return TemplateResponse(request, "admin/console/comparison.html", context)


def pair_view(console: Any, request: HttpRequest) -> HttpResponse:
    """A fact and a proposal side by side with their evidence, once it is noted who reads them."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    reader = staff_of(request)
    if not console.has_view_permission(request) or not may_read(reader):
        raise PermissionDenied
    fact_id, _between, proposal_id = request.POST.get("pair", "").partition(" ")
    fact = Fact.objects.filter(pk=_number(fact_id, "f:")).defer("embedding").first()
    proposal = ShadowFactProposal.objects.filter(pk=_number(proposal_id, "p:")).first()
    if fact is None or proposal is None or fact.owner_id != proposal.owner_id:
        raise Http404
    note_facts(reader, [fact])
    context = {
        **console.admin_site.each_context(request),
        "title": _("Private text"),
        "opts": console.opts,
        "back": QueryDict(request.POST.get("back", "")).urlencode(),
        "fact": words_of([fact])[0],
        "fact_proofs": read_proofs(reader, fact.owner_id, evidence_of(fact)),
        **read_proposal(reader, proposal.pk),
    }
    return TemplateResponse(request, "admin/console/pair.html", context)


def _with_pairs(request: HttpRequest, name: str, label: str, matched: Matched) -> dict[str, Any]:
    """A measure with one page of its pairs, the one that the address names. What a model was paid for to pair is gone
    with the page that shows it, so that page holds all."""
    pages = Paginator(matched.pairs, PAIRS_SHOWN if request.method == "GET" else max(len(matched.pairs), 1))
    page = pages.get_page(request.GET.get(name))
    numbers = [
        (number, "" if number == pages.ELLIPSIS else _with(request.GET, name, number))
        for number in pages.get_elided_page_range(page.number)
    ]
    opened = name in request.GET
    return {"id": name, "label": label, "matched": matched, "page": page, "numbers": numbers, "open": opened}


def _with(query: QueryDict, name: str, value: object) -> str:
    """The query of an address with one value set."""
    changed = query.copy()
    changed[name] = str(value)
    return changed.urlencode()


def measures(found: Report) -> list[tuple[str, str, Matched]]:
    """(id, name, pairs and coverage) of each measure that there is."""
    there = [
        ("exact", gettext("Equal words"), found.exact),
        ("evidence", gettext("Shared evidence"), found.evidence),
    ]
    if found.semantic is not None:
        there.append(("semantic", gettext("Same meaning"), found.semantic.matched))
    return there


def charts(found: Report) -> list[tuple[str, str, str, str]]:
    """(id, heading, Chart.js data, Chart.js options) of each chart that has anything to show."""
    both = measures(found)
    names = [f"{label}, {side}" for _name, label, _matched in both for side in (gettext("steward"), gettext("shadow"))]
    sides = [side for _n, _l, matched in both for side in (matched.steward_by_shadow, matched.shadow_by_steward)]
    covered = {
        gettext("with a counterpart"): [side.covered for side in sides],
        gettext("without"): [side.total - side.covered for side in sides],
    }
    paths = sorted({row.path for row in found.costs})
    # What went well has the first colour, whatever else there is.
    statuses = sorted({row.status for row in found.costs}, key=lambda status: (status not in WELL, status))
    dollars = {
        str(status_name(status)): [
            float(
                sum(
                    (row.cost or Decimal(0) for row in found.costs if (row.path, row.status) == (path, status)),
                    Decimal(0),
                )
            )
            for path in paths
        ]
        for status in statuses
    }
    judged = {
        gettext("correct"): [row.correct for row in found.proposed],
        gettext("not correct"): [row.judged - row.correct for row in found.proposed],
        gettext("held, not judged"): [row.proposed - row.rejected - row.judged for row in found.proposed],
        gettext("rejected"): [row.rejected for row in found.proposed],
    }
    ways = [(reader, way, row) for reader, rows in found.examined.items() for way, row in rows.items()]
    read = {
        gettext("once"): [row.once for _reader, _way, row in ways],
        pgettext("how often", "never"): [row.never for _reader, _way, row in ways],
        gettext("again"): [row.again for _reader, _way, row in ways],
    }
    models = [", ".join(filter(None, (path_name(row.path), row.model))) for row in found.proposed]
    # Lying, so that each bar keeps its name on a phone too.
    counts, sums = stacked_options(lying=True, whole=True), stacked_options(lying=True)
    drawn: list[tuple[str, str, list[str], Mapping[str, Sequence[float]], str]] = [
        ("coverage", gettext("What has a counterpart on the other side"), names, covered, counts),
        ("examined", gettext("How often messages were read"), list(map(_way_label, ways)), read, counts),
        ("dollars", gettext("Dollars by path, where known"), list(map(path_name, paths)), dollars, sums),
        ("verdicts", gettext("Proposals and verdicts"), models, judged, counts),
    ]
    return [
        (name, heading, stacked_bars(bars, values), options)
        for name, heading, bars, values, options in drawn
        if any(any(sizes) for sizes in values.values())
    ]


def path_name(path: str) -> str:
    return str(PATHS.get(path, path))


def status_name(status: str) -> str:
    return str(STATUSES.get(status, status))


def kind_name(kind: str) -> str:
    return gettext("unreadable") if kind == UNREADABLE else str(dict(FactEvidence.Kind.choices).get(kind, kind))


def way_name(way: str) -> str:
    return gettext("goes on") if way == LIVE else str(dict(Generation.EndReason.choices).get(way, way))


def _way_label(row: tuple[str, str, Examined]) -> str:
    return f"{PATHS.get(row[0], gettext('shadow'))}: {way_name(row[1])}"


def _judged(request: HttpRequest, found: Report) -> Report:
    try:
        judged = async_to_sync(pairing.judge)(found.steward, found.shadow)
    except PairingRefused as refusal:
        messages.error(request, f"{gettext('No pair of this answer counts.')} {refusal}")
        return found
    return replace(found, semantic=comparison_report.semantic(judged))


def _number(key: str, tag: str) -> int:
    number = key.removeprefix(tag)
    return int(number) if key.startswith(tag) and number.isascii() and number.isdecimal() and len(number) <= 18 else 0
