"""Rows of the server itself and of the parts it is built from: to read, in the console's theme."""

from datetime import datetime
from typing import Any

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django_q.models import Failure, OrmQ, Schedule, Success, Task
from rest_framework.authtoken.models import TokenProxy

from maxclaw.admin_base import BigTableAdmin, ReadOnlyAdmin
from maxclaw.models import Heartbeat

# A token is as good as its owner's password, and whoever sees it may read what the owner may.
for _theirs in (TokenProxy, AccessAttempt, AccessFailureLog, AccessLog, Failure, OrmQ, Schedule, Success):
    if admin.site.is_registered(_theirs):
        admin.site.unregister(_theirs)


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "beat_at"]
    ordering = ["-beat_at"]


@admin.register(LogEntry)
class LogEntryAdmin(BigTableAdmin):
    """What staff did in the admin."""

    list_display = ["action_time", "user", "action_flag", "content_type", "object_repr"]
    list_filter = ["action_flag", "content_type"]
    list_select_related = ["user", "content_type"]
    search_fields = ["user__username", "=object_id"]


class ForeignAdmin(ReadOnlyAdmin):
    """Rows of a package that speaks English alone: without its name of the row, and without its notes on each field,
    which are for whoever writes such a row."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        response = super().changeform_view(request, *args, **kwargs)
        if hasattr(response, "context_data"):
            response.context_data["subtitle"] = ""
        return response

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        silence = dict.fromkeys((field.name for field in self.opts.concrete_fields), "")
        return super().get_form(request, obj, change, help_texts=silence, **kwargs)


@admin.register(OrmQ)
class QueuedTaskAdmin(ForeignAdmin):
    list_display = ["id", "name", "function", "locked_until"]
    fields = ["task_id", "name", "function", "arguments", "locked_until"]
    ordering = ["id"]

    @admin.display(description=_("function"))
    def function(self, queued: OrmQ) -> str:
        return queued.func() or ""

    @admin.display(description=_("locked until"))
    def locked_until(self, queued: OrmQ) -> datetime | None:
        return queued.lock

    @admin.display(description=_("arguments"))
    def arguments(self, queued: OrmQ) -> str:
        """Ids and times: words never travel through the queue."""
        return f"{queued.args()} {queued.kwargs()}"


class RunTaskAdmin(ForeignAdmin, BigTableAdmin):
    """A task that has run. Which rows, its proxy model says."""

    ordering = ["-stopped"]
    list_display = ["name", "func", "started", "seconds"]
    list_filter = ["func"]
    search_fields = ["name", "func"]
    fields = ["name", "func", "arguments", "started", "stopped", "attempt_count", "outcome"]

    @admin.display(description=_("seconds"))
    def seconds(self, task: Task) -> str:
        return f"{(task.stopped - task.started).total_seconds():.2f}"

    @admin.display(description=_("arguments"))
    def arguments(self, task: Task) -> str:
        return f"{task.args or ()} {task.kwargs or {}}"

    @admin.display(description=_("outcome"))
    def outcome(self, task: Task) -> str:
        return str(task.result)


admin.site.register(Success, RunTaskAdmin)
admin.site.register(Failure, RunTaskAdmin)


@admin.register(Schedule)
class ScheduleAdmin(ForeignAdmin):
    list_display = fields = ["name", "func", "schedule_type", "minutes", "next_run"]


class SignInAdmin(ForeignAdmin, BigTableAdmin):
    """Sign-ins, failed or not. What was typed stays out of sight: people type passwords where names belong."""

    search_fields = ["username", "ip_address"]
    list_filter = ["attempt_time"]

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [field.name for field in self.opts.concrete_fields if field.name not in ("get_data", "post_data")]


@admin.register(AccessAttempt)
class FailedSignInAdmin(SignInAdmin):
    """Failures that count against a name and an address. Deleting them lets the person try again at once."""

    list_display = ["attempt_time", "username", "ip_address", "failures_since_start", "user_agent"]
    actions = ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("axes.delete_accessattempt")


@admin.register(AccessLog)
class SuccessfulSignInAdmin(SignInAdmin):
    list_display = ["attempt_time", "username", "ip_address", "logout_time", "user_agent"]
