"""What pages of the console share: rows that are only read, and big tables that are never counted."""

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator


class ReadOnlyAdmin(ModelAdmin):
    """Rows that nobody adds, changes or deletes here."""

    show_full_result_count = False
    actions: Any = None

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class BigTableAdmin(ReadOnlyAdmin):
    """A table that grows with every turn: newest first, leafed through without counting its rows."""

    paginator = InfinitePaginator
    ordering = ["-pk"]
    list_per_page = 50
