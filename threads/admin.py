"""Conversations for staff: who, when and how much, never what was said."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin, TabularInline

from accounts import erasing
from threads.models import Generation, Message, Thread


class GenerationInline(TabularInline):
    """The generations of a conversation, without their words."""

    model = Generation
    fields = readonly_fields = ("ordinal", "started", "ended", "end_reason", "cut", "rows", "header")
    ordering = ("ordinal",)
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        return False

    @admin.display(description=_("rows"))
    def rows(self, generation: Generation) -> int:
        return generation.messages.count()


@admin.register(Thread)
class ThreadAdmin(ModelAdmin):
    """Conversations of every owner. A title is the owner's words, so it is not shown either."""

    list_display = ("channel", "owner", "kind", "status", "state", "scope", "category", "updated")
    list_filter = ("kind", "status", "state", "scope", "category")
    search_fields = ("channel", "owner__username")
    list_select_related = ("owner",)
    ordering = ("-updated",)
    show_full_result_count = False
    fields = readonly_fields = (
        "channel",
        "owner",
        "kind",
        "status",
        "state",
        "scope",
        "category",
        "island",
        "parent",
        "model",
        "lease_until",
        "lease_holder",
        "message_count",
        "created",
        "updated",
    )
    inlines = (GenerationInline,)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Thread | None = None) -> bool:
        """The main conversation goes with its account alone."""
        if obj is not None and obj.kind == Thread.Kind.MAIN:
            return False
        return super().has_delete_permission(request, obj)

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

    @admin.display(description=_("messages"))
    def message_count(self, thread: Thread) -> int:
        return thread.messages.count()
