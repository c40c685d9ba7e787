"""Turns for staff: what waits, what runs, what it called, what overflowed; and how the work goes."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline

from accounts.models import User
from agent import frames, health, registry
from agent.models import ImportedConversation, ImportJob, InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from llm import budgets
from llm.models import ModelCall
from maxclaw import clock
from maxclaw.admin_base import BigTableAdmin
from maxclaw.admin_figures import Figure, figures
from maxclaw.models import Heartbeat
from threads.admin import PrivateTextAdmin
from threads.models import PrivateReading

HEALTH_PERMISSIONS = ("threads.view_thread", "django_q.view_ormq")
BUDGET_ROWS = 50
What = PrivateReading.What
TASK = "task/"
SOURCES = {
    "user": _("the user"),
    frames.RENEWAL_AT_THRESHOLD: _("renewal: context full"),
    frames.RENEWAL_ASKED: _("renewal: asked for"),
    frames.RENEWAL_TO_FORGET: _("renewal: to forget"),
}


class TurnRowAdmin(PrivateTextAdmin, BigTableAdmin):
    """A row of a turn, with its thread and owner."""

    list_select_related = ("thread", "owner")
    search_fields = ("=id", "thread__channel", "owner__username")
    linked_lookups = ("thread__id__exact",)
    readonly_fields = ("source_name",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["source_name" if name == "source" else name for name in super().get_fields(request, obj)]

    @admin.display(description=_("source"))
    def source_name(self, row: Any) -> str:
        """Where a row comes from, in words."""
        if row.source.startswith(TASK):
            return gettext("task given by %(channel)s") % {"channel": row.source.removeprefix(TASK)}
        return str(SOURCES.get(row.source, row.source))


@admin.display(description=_("tool"))
def known_tool(call: ToolCall) -> str | None:
    """The tool's name where it is one of ours: others come from imported files, or were made up."""
    return call.tool if registry.get(call.tool) else None


class KnownToolFilter(admin.SimpleListFilter):
    """By the tools that there are, and no other name."""

    title = _("tool")
    parameter_name = "of_tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(tool.name, tool.name) for tool in registry.all_tools()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ToolCall]) -> QuerySet[ToolCall]:
        name = self.value()
        return queryset.filter(tool=name) if name and registry.get(name) else queryset


class ToolCallInline(TabularInline):
    """The calls of a turn, without their arguments."""

    model = ToolCall
    fields = readonly_fields = (known_tool, "status", "started", "duration_ms")
    ordering = ("id",)
    extra = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: TaskFrame | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: TaskFrame | None = None) -> bool:
        return False


@admin.register(InboxItem)
class InboxItemAdmin(TurnRowAdmin):
    private_fields = ("text", "quote", "client_key")
    what = What.INBOX_ITEM
    list_display = ("id", "thread", "owner", "level", "source_name", "state", "created")
    list_filter = ("state", "level")


@admin.register(TaskFrame)
class TaskFrameAdmin(TurnRowAdmin):
    """Turns. The notice is a sentence of ours, but a model's server may have put words of the request into it."""

    private_fields = ("notice",)
    what = What.TURN
    list_display = ("id", "thread", "owner", "level", "state", "steps", "end_reason", "created", "ended")
    list_filter = ("state", "end_reason", "level")
    inlines = (ToolCallInline,)

    def get_inlines(self, request: HttpRequest, obj: TaskFrame | None) -> Any:
        """No table of calls where there are none."""
        return self.inlines if obj and ToolCall.objects.filter(frame=obj).exists() else ()

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.health_view)
        return [path("health/", view, name="agent_health"), *super().get_urls()]

    def health_view(self, request: HttpRequest) -> HttpResponse:
        """Queue, tick, workers, leases and budgets on one page."""
        if not request.user.has_perms(HEALTH_PERMISSIONS):
            raise PermissionDenied
        work = health.work()
        context = {
            **self.admin_site.each_context(request),
            "title": _("Health"),
            "work": work,
            "figures": list(work_figures(request)),
            "heartbeats": Heartbeat.objects.order_by("-beat_at")[:50],
            "budgets": budget_rows() if request.user.has_perm("llm.view_modelcall") else None,
        }
        return TemplateResponse(request, "admin/console/health.html", context)


@admin.register(ToolCall)
class ToolCallAdmin(TurnRowAdmin):
    private_fields = ("tool", "call_id", "arguments")
    what = What.TOOL_CALL
    list_display = ("id", "thread", "owner", known_tool, "status", "started", "duration_ms")
    list_filter = ("status", KnownToolFilter)


@admin.register(OverflowEvent)
class OverflowEventAdmin(TurnRowAdmin):
    private_fields = ("diagnosis",)
    what = What.OVERFLOW
    list_display = ("id", "thread", "owner", "source_name", "before_tokens", "after_tokens", "created")


@admin.register(TurnEvent)
class TurnEventAdmin(TurnRowAdmin):
    private_fields = ("body",)
    what = What.TURN_EVENT
    list_display = ("thread", "number", "kind", "created")
    list_filter = ("kind",)


@admin.register(ImportedConversation)
class ImportedConversationAdmin(BigTableAdmin):
    """Which conversations were imported. What one is called in its file is its owner's business."""

    list_display = ("id", "thread", "owner", "format", "created")
    exclude = ("source", "branch")
    list_select_related = ("thread", "owner")
    search_fields = ("thread__channel", "owner__username")


@admin.register(ImportJob)
class ImportJobAdmin(BigTableAdmin):
    """Imports of uploaded files. What the file is called and what is in it is its owner's business."""

    list_display = ("id", "owner", "state", "attempts", "position", "created", "finished")
    list_filter = ("state",)
    list_select_related = ("owner",)
    search_fields = ("owner__username",)
    exclude = ("file_name", "stored_as", "report", "problem")


@figures(_("Work"), place=10, permissions=HEALTH_PERMISSIONS)
def work_figures(request: HttpRequest) -> Iterable[Figure]:
    """Queue, tick, workers, leases."""
    work = health.work()
    details = reverse("admin:agent_health")
    yield Figure(
        _("Queued tasks"),
        work.queued_tasks,
        alarm=work.queue_long,
        url=reverse("admin:django_q_ormq_changelist"),
    )
    yield Figure(
        _("Last tick"),
        ago(work.tick_age),
        hint=gettext("failed: %(jobs)s") % {"jobs": ", ".join(work.failed_jobs)} if work.failed_jobs else "",
        alarm=work.tick_late or bool(work.failed_jobs),
        url=details,
    )
    yield Figure(
        _("Last sign of a worker"),
        ago(work.worker_age),
        alarm=work.workers_silent,
        url=reverse("admin:maxclaw_heartbeat_changelist"),
    )
    yield Figure(
        _("Lapsed leases"),
        len(work.lapsed),
        hint=_("turns whose process is gone"),
        alarm=bool(work.lapsed),
        url=details,
    )
    yield Figure(_("Turns running"), work.running_threads, url=reverse("admin:agent_taskframe_changelist"))
    yield Figure(_("Items waiting"), work.waiting_items, url=reverse("admin:agent_inboxitem_changelist"))
    if not work.rewriting.is_done:
        yield Figure(
            _("Files to rewrite"),
            work.rewriting.left or work.rewriting.total,
            hint=_("after erasures") if settings.DATABASE_EMBEDDED else "manage.py rewrite_storage",
        )


def ago(seconds: float | None) -> str:
    """How long something is past, in the largest fitting unit."""
    if seconds is None:
        return gettext("never")
    seconds = max(round(seconds), 0)
    if seconds < 120:
        return ngettext("%(number)d second ago", "%(number)d seconds ago", seconds) % {"number": seconds}
    minutes = seconds // 60
    if minutes < 120:
        return ngettext("%(number)d minute ago", "%(number)d minutes ago", minutes) % {"number": minutes}
    hours = minutes // 60
    return ngettext("%(number)d hour ago", "%(number)d hours ago", hours) % {"number": hours}


def budget_rows() -> list[dict[str, Any]]:
    """What background calls took of today's budgets: the server's first, then of everyone who used some."""
    # A user's day may have begun up to 26 hours ago, wherever they live.
    recent = ModelCall.objects.filter(started__gte=clock.now() - timedelta(hours=26), reserved_tokens__gt=0)
    spenders = User.objects.filter(pk__in=recent.values("owner")).order_by("username")[:BUDGET_ROWS]
    return [
        _budget_row(None, settings.BUDGET_SERVER_TOKENS, settings.BUDGET_SERVER_DOLLARS),
        *(_budget_row(user, settings.BUDGET_USER_TOKENS, settings.BUDGET_USER_DOLLARS) for user in spenders),
    ]


def _budget_row(owner: User | None, most_tokens: int, most_dollars: float) -> dict[str, Any]:
    spent = budgets.spent_today(owner)
    return {
        "who": gettext("the server") if owner is None else owner.username,
        "tokens": spent.tokens,
        "most_tokens": most_tokens,
        "dollars": spent.cost,
        "most_dollars": most_dollars,
        "exhausted": spent.tokens >= most_tokens or float(spent.cost) >= most_dollars,
    }
