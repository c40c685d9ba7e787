"""What pages of the console share: lists that are filtered as declared alone, rows that are only read, and big
tables that are never counted."""

from typing import Any

from django.contrib.admin import SimpleListFilter
from django.contrib.admin.utils import get_fields_from_path
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

# What Django's own filters of a column append to its name.
FILTER_ENDINGS = ("", "__exact", "__in", "__isnull", "__gte", "__lt")


class ConsoleAdmin(ModelAdmin):
    """A page of the console. Its list is filtered by what `list_filter` and `linked_lookups` name, by nothing else.

    Django would take any column of the table from the address, and so tell whoever may see the list, letter by
    letter, what a column says that the list keeps back.
    """

    # Parameters that links of other pages carry.
    linked_lookups: tuple[str, ...] = ()

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """As in Django, which looks for the row first and so tells whoever may see none which ids there are."""
        if not (self.has_view_or_change_permission(request) or self.has_delete_permission(request)):
            raise PermissionDenied
        return super().get_object(request, object_id, from_field)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        declared = self.get_list_filter(request)
        return lookup in self.linked_lookups or any(lookup in self._parameters(one) for one in declared)

    def _parameters(self, declared: Any) -> tuple[str, ...]:
        """The parameters that one entry of `list_filter` reads."""
        if isinstance(declared, type) and issubclass(declared, SimpleListFilter):
            return (str(declared.parameter_name),)
        path = declared if isinstance(declared, str) else declared[0]
        field: Any = get_fields_from_path(self.model, path)[-1]
        of_relation = (f"{path}__{field.target_field.name}__exact",) if field.is_relation else ()
        return (*(f"{path}{ending}" for ending in FILTER_ENDINGS), *of_relation)


class ReadOnlyAdmin(ConsoleAdmin):
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
