"""Conversations for staff: who, when and how much. What was said is read with a permission of its own, and each
reading is noted."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import TabularInline

from accounts import erasing
from accounts.models import User
from llm import catalog
from llm.admin import ModelCallAdmin
from llm.models import ModelCall
from maxclaw.admin_base import BigTableAdmin, ReadOnlyAdmin
from maxclaw.admin_figures import Figure, figures
from threads.access import parse_message_id
from threads.models import Generation, Message, PrivateReading, Thread
from threads.private_reading import may_read, record_reading

READING_PAGE_ROWS = 50
What = PrivateReading.What


class PrivateTextAdmin(ReadOnlyAdmin):
    """Rows with private text. Their page shows everything else, and to those who may read it a button.

    The button is a POST: reading changes the record, by the row that notes it.
    """

    private_fields: tuple[str, ...] = ()
    what = What.MESSAGE
    change_form_outer_after_template = "admin/console/read_button.html"

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> list[str]:
        return [field.name for field in self.opts.concrete_fields if field.name not in self.private_fields]

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_read"
        view = self.admin_site.admin_view(self.read_view)
        return [path("<path:object_id>/read/", view, name=name), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        row = kwargs.get("obj")
        if row is not None and may_read(_reader(request)):
            name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_read"
            context["read_url"] = reverse(name, args=[row.pk])
        return super().render_change_form(request, context, *args, **kwargs)

    def read_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Show one row's private text, once it is noted who reads it."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        if not self.has_view_permission(request, row) or not may_read(_reader(request)):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": _("Private text"),
            "opts": self.opts,
            "owner": row.owner,
            "thread": self.thread_of(row),
            "back_url": reverse(
                f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change", args=[row.pk]
            ),
            **self.noted(request, row),
        }
        return TemplateResponse(request, "admin/console/private_text.html", context)

    def thread_of(self, row: Any) -> Thread | None:
        thread: Thread = row.thread
        return thread

    def noted(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Note the reading; then what the page shows: {"parts": [(heading, text)]}."""
        self.note(request, row, row.pk, row.pk)
        return {"parts": [(self._heading(name), readable(getattr(row, name))) for name in self.private_fields]}

    def what_of(self, row: Any) -> PrivateReading.What:
        """What kind of row is read."""
        return self.what

    def note(self, request: HttpRequest, row: Any, first_id: int, last_id: int) -> None:
        """Write down who is about to read which rows."""
        record_reading(
            _reader(request),
            owner_id=row.owner_id,
            thread=self.thread_of(row),
            what=self.what_of(row),
            first_id=first_id,
            last_id=last_id,
        )

    def _heading(self, name: str) -> str:
        return str(self.opts.get_field(name).verbose_name)


def readable(value: Any) -> str:
    """Private text as a person reads it: JSON laid out, nothing as nothing."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def _reader(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


class GenerationInline(TabularInline):
    """The generations of a conversation, without their words."""

    model = Generation
    fields = readonly_fields = ("ordinal", "started", "ended", "end_reason", "cut", "rows", "header")
    ordering = ("ordinal",)
    extra = 0
    can_delete = False
    show_change_link = True

    def has_add_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Generation]:
        rows: QuerySet[Generation] = super().get_queryset(request)
        return rows.defer("opening", "summary", "summary_before").annotate(row_count=Count("messages"))

    @admin.display(description=_("rows"))
    def rows(self, generation: Any) -> int:
        return int(generation.row_count)


@admin.register(Thread)
class ThreadAdmin(PrivateTextAdmin):
    """Conversations of every owner. A title is the owner's words, so it is private too."""

    what = What.CONVERSATION
    actions = ()
    list_display = ("channel", "owner", "kind", "status", "turn", "scope", "category", "updated")
    list_filter = ("kind", "status", "state", "scope", "category")
    search_fields = ("channel", "owner__username")
    list_select_related = ("owner",)
    ordering = ("-updated",)
    readonly_fields = ("message_count", "records")
    inlines = (GenerationInline,)
    fieldsets = (
        (None, {"fields": ("channel", "owner", "kind", "status", "message_count", "records")}),
        (_("Level"), {"fields": ("scope", "island", "category", "parent", "copied_from", "model")}),
        (_("Turn"), {"fields": ("state", "lease_until", "lease_holder")}),
        (_("Times"), {"fields": ("created", "updated", "deleted")}),
    )

    @admin.display(description=_("turn"), ordering="state")
    def turn(self, thread: Thread) -> str:
        return thread.get_state_display()

    def has_delete_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        """The main conversation goes with its account alone."""
        if obj is not None and obj.kind == Thread.Kind.MAIN:
            return False
        return request.user.has_perm("threads.delete_thread")

    def get_deleted_objects(
        self, objs: QuerySet[Thread] | Sequence[Thread], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        """What erasing takes along, counted: one's own way to delete has its own list, and it names no words."""
        threads: dict[int, Thread] = {}
        for thread in objs:
            threads.update(erasing.going_with(thread))
        counts = {
            str(Thread._meta.verbose_name_plural): len(threads),
            str(Message._meta.verbose_name_plural): Message.objects.filter(thread_id__in=threads).count(),
        }
        protected = [thread.channel for thread in threads.values() if thread.kind == Thread.Kind.MAIN]
        return [thread.channel for thread in threads.values()], counts, set(), protected

    def delete_model(self, request: HttpRequest, obj: Thread) -> None:
        erasing.erase_thread(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Thread]) -> None:
        erased = 0
        for thread in queryset:
            # A task among the chosen may have gone with the conversation that started it.
            if Thread.objects.filter(pk=thread.pk).exists():
                erasing.erase_thread(thread)
                erased += 1
        self.message_user(
            request,
            ngettext("%(count)d conversation was erased.", "%(count)d conversations were erased.", erased)
            % {"count": erased},
            messages.SUCCESS,
        )

    def thread_of(self, row: Thread) -> Thread:
        return row

    def noted(self, request: HttpRequest, row: Thread) -> dict[str, Any]:
        """A page of the conversation from the message asked for, noted with its first and last message."""
        after = parse_message_id(request.POST.get("after", "")) or 0
        with transaction.atomic():
            found = Message.objects.filter(thread=row, pk__gt=after).order_by("pk")
            ids = list(found.values_list("pk", flat=True)[: READING_PAGE_ROWS + 1])
            shown = ids[:READING_PAGE_ROWS]
            first, last = (shown[0], shown[-1]) if shown else (after, after)
            self.note(request, row, first, last)
            rows = list(Message.objects.filter(pk__in=shown).select_related("generation").order_by("pk"))
        more = {"next_after": last} if len(ids) > READING_PAGE_ROWS else {}
        return {"parts": [(_("title"), row.title)], "rows": [(message, said(message)) for message in rows], **more}

    @admin.display(description=_("messages"))
    def message_count(self, thread: Thread) -> int:
        return thread.messages.count()

    @admin.display(description=_("its rows"))
    def records(self, thread: Thread) -> str:
        """Links to the lists of what belongs to this conversation."""
        links = [
            (_("Messages"), "threads_message_changelist", "thread__id__exact"),
            (_("Turns"), "agent_taskframe_changelist", "thread__id__exact"),
            (_("Tool calls"), "agent_toolcall_changelist", "thread__id__exact"),
            (_("Model calls"), "llm_modelcall_changelist", "thread_id"),
        ]
        return format_html(
            " · ".join(['<a href="{}" class="text-primary-600 dark:text-primary-400 underline">{}</a>'] * len(links)),
            *[
                part
                for title, name, column in links
                for part in (f"{reverse(f'{self.admin_site.name}:{name}')}?{column}={thread.pk}", title)
            ],
        )


def said(message: Message) -> str:
    """What a row says: its text, or the blocks of one that has none."""
    if message.text or message.wire is None:
        return message.text
    return readable(json.loads(message.wire))


@admin.register(Message)
class MessageAdmin(PrivateTextAdmin, BigTableAdmin):
    """Rows of the record without their words."""

    private_fields = ("text", "search_text", "wire", "meta", "tool_call_id", "model")
    what = What.MESSAGE
    list_display = ("id", "thread", "owner", "generation", "role", "known_model", "failed", "left_because", "created")
    list_filter = ("role", "left_because", "is_error")
    linked_lookups = ("thread__id__exact",)
    search_fields = ("=id", "thread__channel", "owner__username")
    list_select_related = ("thread", "owner", "generation")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Message]:
        rows: QuerySet[Message] = super().get_queryset(request)
        return rows.defer("text", "search_text", "wire", "meta")

    @admin.display(description=_("model"))
    def known_model(self, message: Message) -> str | None:
        """The model's name where it is in the catalog: others come from imported files."""
        return message.model if message.model in catalog.load_catalog().models else None

    @admin.display(description=_("failed"))
    def failed(self, message: Message) -> str:
        return gettext("failed") if message.is_error else ""

    def noted(self, request: HttpRequest, row: Message) -> dict[str, Any]:
        shown = super().noted(request, row)
        # The searchable form repeats the text.
        return {
            "parts": [
                part for part, name in zip(shown["parts"], self.private_fields, strict=True) if name != "search_text"
            ]
        }


@admin.register(Generation)
class GenerationAdmin(PrivateTextAdmin, BigTableAdmin):
    """Stretches of conversations without their opening and summary."""

    private_fields = ("opening", "summary", "summary_before", "standing")
    what = What.GENERATION
    list_display = ("id", "thread", "owner", "ordinal", "started", "ended", "end_reason", "cut")
    list_filter = ("end_reason",)
    search_fields = ("=id", "thread__channel", "owner__username")
    list_select_related = ("thread", "owner")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Generation]:
        rows: QuerySet[Generation] = super().get_queryset(request)
        return rows.defer(*self.private_fields)


admin.site.unregister(ModelCall)


@admin.register(ModelCall)
class PrivateModelCallAdmin(PrivateTextAdmin, ModelCallAdmin):
    """Model calls; what a model's server answered instead of an answer may quote the request, so it is private."""

    private_fields = ("error",)
    what = What.MODEL_CALL

    def thread_of(self, row: ModelCall) -> Thread | None:
        if row.thread_id is None or row.owner_id is None:
            return None
        return Thread.objects.filter(pk=row.thread_id, owner_id=row.owner_id).first()


@admin.register(PrivateReading)
class PrivateReadingAdmin(BigTableAdmin):
    """Who read whose private text. Nobody changes these rows, superusers included."""

    list_display = ("read_at", "reader", "owner", "thread", "what", "first_id", "last_id")
    list_filter = ("what", ("read_at", admin.DateFieldListFilter))
    search_fields = ("reader__username", "owner__username", "thread__channel")
    list_select_related = ("reader", "owner", "thread")


@figures(_("Conversations"), place=30, permissions=("threads.view_thread",))
def conversation_figures(request: HttpRequest) -> Iterable[Figure]:
    """How many there are, and what they do."""
    by_state = dict(Thread.objects.values_list("state").annotate(number=Count("pk")))
    listed = reverse("admin:threads_thread_changelist")
    yield Figure(_("Conversations"), sum(by_state.values()), url=listed)
    yield Figure(_("Answering now"), by_state.get("running", 0), url=f"{listed}?state__exact=running")
    yield Figure(_("Waiting for their user"), by_state.get("waiting", 0), url=f"{listed}?state__exact=waiting")
