"""Model calls and their headers in the console: to read, never to change."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from llm.models import ModelCall, RequestHeader


class ReadOnlyAdmin(ModelAdmin):
    """Rows are receipts: nobody adds, changes or deletes them here."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
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
        "cost",
        "first_token_ms",
        "total_ms",
    ]
    list_filter = ["purpose", "outcome", "model", ("started", admin.DateFieldListFilter)]
    list_select_related = ["owner"]
    search_fields = ["=thread_id", "=generation_id", "=request_id", "owner__username"]
    ordering = ["-id"]
    show_full_result_count = False

    @admin.display(description=_("prompt"))
    def prompt_tokens(self, call: ModelCall) -> int | None:
        """The whole prompt, None where the server told nothing."""
        return prompt_of(call)

    @admin.display(description=_("from the cache"))
    def cache_read_share(self, call: ModelCall) -> str:
        prompt = prompt_of(call)
        return f"{100 * (call.cache_read_tokens or 0) / prompt:.0f} %" if prompt else "–"


def prompt_of(call: ModelCall) -> int | None:
    """Prompt tokens of a stored call, however they were billed."""
    if call.input_tokens is None:
        return None
    cached = (call.cache_read_tokens, call.cache_write_5m_tokens, call.cache_write_1h_tokens)
    return call.input_tokens + sum(count or 0 for count in cached)


@admin.register(RequestHeader)
class RequestHeaderAdmin(ReadOnlyAdmin):
    list_display = ["sha256", "created"]
    search_fields = ["sha256"]
    ordering = ["-created"]
