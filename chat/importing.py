"""The import page: upload an export, watch it being imported, read what became of it."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt, csrf_protect, ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import User
from agent import import_jobs
from agent.import_run import PROBLEMS_KEPT, Report
from agent.models import ImportJob
from agent.refusals import Refused
from chat.uploads import FORM_MAX_BYTES, ImportUpload, too_large
from maxclaw.sentences import read

JOBS_SHOWN = 10
BAD_REQUEST, CONFLICT, TOO_LARGE = 400, 409, 413


@never_cache
@csrf_exempt  # checked inside, after the upload's handler is in place: reading the token reads the form
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def import_page(request: HttpRequest) -> HttpResponse:
    """One's imports, and a form for another."""
    if request.method != "POST":
        return _page(request)
    limit = settings.IMPORT_MAX_BYTES
    if int(request.headers.get("Content-Length") or 0) > limit + FORM_MAX_BYTES:
        return _refused(request, too_large(limit), TOO_LARGE)
    upload = ImportUpload(request, limit)
    request.upload_handlers = [upload]
    try:
        return _take(request, upload)
    finally:
        upload.discard()


@csrf_protect
def _take(request: HttpRequest, upload: ImportUpload) -> HttpResponse:
    request.FILES  # noqa: B018  # reading it is what stores the file
    if upload.problem:
        return _refused(request, upload.problem, TOO_LARGE)
    if not upload.stored_as or not upload.size:
        return _refused(request, _("Choose a file first; an empty one holds no conversations."), BAD_REQUEST)
    stored_as, upload.stored_as = upload.stored_as, ""  # it is the job's from here on
    try:
        import_jobs.start(_user(request), stored_as, upload.original_name)
    except Refused as refusal:
        return _refused(request, refusal.sentence, CONFLICT)
    if _wants_json(request):
        return JsonResponse({"location": reverse("import")})
    return redirect("import")


@never_cache
@login_required
@require_safe
def import_state(request: HttpRequest, job: int) -> JsonResponse:
    """How far an import came, for the page that shows it."""
    found = import_jobs.jobs_of(_user(request)).filter(pk=job).first()
    if found is None:
        raise Http404
    view = job_view(found)
    return JsonResponse({name: view[name] for name in ("open", "percent", "sentence", "figures")})


@login_required
@require_POST
def cancel_import(request: HttpRequest, job: int) -> HttpResponse:
    """Stop an import; what was imported stays."""
    try:
        import_jobs.cancel(_user(request), job)
    except ImportJob.DoesNotExist:
        raise Http404 from None
    return redirect("import")


def job_view(job: ImportJob) -> dict[str, Any]:
    """An import as the page shows it."""
    report = Report.from_json(job.report)
    is_open = job.state in import_jobs.OPEN_STATES
    return {
        "id": job.pk,
        "file_name": job.file_name,
        "created": job.created,
        "state": job.state,
        "open": is_open,
        "percent": min(100 * job.done // job.total, 100) if job.total and job.done else None,
        "sentence": _sentence(job),
        "figures": _figures(report),
        "problem": str(read(job.problem)),
        "problems": [(str(where), str(why)) for where, why, _source in report.problems],
        "unnamed": max(report.left_out - len(report.problems), 0) if len(report.problems) >= PROBLEMS_KEPT else 0,
        "found_any": bool(report.new or report.grown or report.unchanged),
    }


def _sentence(job: ImportJob) -> str:
    if job.cancel_asked and job.state == ImportJob.State.RUNNING:
        return _("Stopping…")
    return {
        ImportJob.State.WAITING: _("Waiting for its turn…"),
        ImportJob.State.RUNNING: _("Importing…"),
        ImportJob.State.DONE: _("Imported."),
        ImportJob.State.FAILED: _("Not imported."),
        ImportJob.State.CANCELLED: _("Cancelled. What was imported before stays."),
    }[ImportJob.State(job.state)]


def _figures(report: Report) -> list[dict[str, Any]]:
    """What there is none of is left out, except for the first."""
    figures = [
        (_("New conversations"), report.new),
        (_("Branches"), report.branches),
        (_("Conversations that grew"), report.grown),
        (_("Already there"), report.unchanged),
        (_("Messages imported"), report.added),
        (_("Without messages"), report.empty),
        (_("Left out"), report.left_out),
    ]
    return [{"name": name, "count": count} for number, (name, count) in enumerate(figures) if count or not number]


def _page(request: HttpRequest, problem: str = "", status: int = 200) -> HttpResponse:
    jobs = [job_view(job) for job in import_jobs.jobs_of(_user(request))[:JOBS_SHOWN]]
    context = {
        "jobs": jobs,
        "busy": any(job["open"] for job in jobs),
        "problem": problem,
        "limit_mb": settings.IMPORT_MAX_BYTES // 1024**2,
        "limit_bytes": settings.IMPORT_MAX_BYTES,
    }
    return ensure_csrf_cookie(lambda _request: render(request, "chat/import.html", context, status=status))(request)


def _refused(request: HttpRequest, problem: str, status: int) -> HttpResponse:
    if _wants_json(request):
        return JsonResponse({"reason": problem}, status=status)
    return _page(request, problem, status)


def _wants_json(request: HttpRequest) -> bool:
    return request.headers.get("Accept", "") == "application/json"


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
