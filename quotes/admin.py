"""Every quote that was given: from where to where, at which levels, and who confirmed what and when.

Titles, the quoted words and the confirmed sentence, which names the target, are private text: they are read as such.
"""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import DateTimeField, OuterRef, QuerySet, Subquery, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, NullIf
from django.http import HttpRequest
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from maxclaw.admin_base import BigTableAdmin
from quotes.models import GivenQuote
from threads.admin import PrivateTextAdmin, readable
from threads.models import PrivateReading, Thread

# What a frozen quote says without a word of anybody's.
OPEN_TO_STAFF = (
    "kind",
    "channel",
    "message_id",
    "generation",
    "text_length",
    "source_scope",
    "source_category",
    "target_scope",
    "target_category",
    "needs_confirm",
)


class Confirmed(admin.SimpleListFilter):
    """Whether a boundary was crossed, which the person confirmed."""

    title = _("confirmation")
    parameter_name = "confirmation"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("true", _("confirmed")), ("false", _("not needed"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[GivenQuote]) -> QuerySet[GivenQuote]:
        if self.value() in ("true", "false"):
            return queryset.filter(quote__needs_confirm=self.value() == "true")
        return queryset


class Kind(admin.SimpleListFilter):
    title = _("what was quoted")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("message", _("a message")), ("channel", _("a conversation"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[GivenQuote]) -> QuerySet[GivenQuote]:
        return queryset.filter(quote__kind=self.value()) if self.value() else queryset


@admin.register(GivenQuote)
class GivenQuoteAdmin(PrivateTextAdmin, BigTableAdmin):
    """The record of quotes. Nobody changes it: it is what was sent."""

    list_display = ("created", "owner", "source", "source_level", "thread", "target_level", "confirmation")
    list_filter = (Confirmed, Kind)
    search_fields = ("=id", "thread__channel", "owner__username", "quote__channel")
    ordering = ["-created", "-id"]
    list_select_related = ("thread", "owner")
    readonly_fields = fields = (
        "id",
        "created",
        "owner",
        "source",
        "source_level",
        "thread",
        "target_level",
        "extent",
        "confirmation",
    )

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return list(self.fields)

    def get_queryset(self, request: HttpRequest) -> QuerySet[GivenQuote]:
        rows: QuerySet[GivenQuote] = super().get_queryset(request)
        said = {f"quote_{name}": KT(f"quote__{name}") for name in OPEN_TO_STAFF}
        at = Cast(NullIf(KT("quote__confirmed_at"), Value("")), DateTimeField())
        there = Thread.objects.filter(channel=OuterRef("quote_channel")).values("pk")
        return (
            rows.defer("quote", "words")
            .annotate(**said, quote_confirmed_at=at)
            .annotate(source_thread_id=Subquery(there[:1]))
        )

    @admin.display(description=_("source"))
    def source(self, row: Any) -> str:
        """The quoted conversation, as a link while it is there, and the message or the generation quoted."""
        place = (
            gettext("message %(id)s") % {"id": row.quote_message_id}
            if row.quote_kind == "message"
            else gettext("the conversation, generation %(id)s") % {"id": row.quote_generation}
        )
        if row.source_thread_id is None:
            return f"{row.quote_channel} · {place}"
        return format_html(
            '<span><a href="{}">{}</a> · {}</span>',
            reverse(f"{self.admin_site.name}:threads_thread_change", args=[row.source_thread_id]),
            row.quote_channel,
            place,
        )

    @admin.display(description=_("source level"))
    def source_level(self, row: Any) -> str:
        return _level(row.quote_source_scope, row.quote_source_category)

    @admin.display(description=_("target level"))
    def target_level(self, row: Any) -> str:
        return _level(row.quote_target_scope, row.quote_target_category)

    @admin.display(description=_("characters"))
    def extent(self, row: Any) -> str:
        return row.quote_text_length or gettext("none: a title and an address")

    @admin.display(description=_("confirmation"))
    def confirmation(self, row: Any) -> str:
        """Who confirmed that a boundary is crossed, and when. A conversation is its owner's alone, so it was they."""
        if row.quote_needs_confirm != "true":
            return gettext("not needed")
        return gettext("by %(owner)s, %(when)s") % {"owner": row.owner, "when": _when(row.quote_confirmed_at)}

    def what_of(self, row: Any) -> PrivateReading.What:
        return PrivateReading.What.MESSAGE if row.message_id else PrivateReading.What.INBOX_ITEM

    def noted(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        self.note(request, row, row.message_id or row.item_id, row.message_id or row.item_id)
        quote = row.quote
        parts = [
            (gettext("title of the source"), quote.get("title")),
            (gettext("quoted text"), quote.get("text")),
            (gettext("what was confirmed"), quote.get("confirm_text")),
            (gettext("the user's own words"), row.words),
        ]
        return {"parts": [(heading, readable(text)) for heading, text in parts]}


def _level(scope: str, category: str) -> str:
    name = str(Thread.Scope(scope).label) if scope in Thread.Scope.values else str(scope)
    return f"{name}, {category}" if category else name


def _when(moment: datetime | None) -> str:
    if moment is None:
        return gettext("at an unknown time")
    return formats.date_format(timezone.localtime(moment), "DATETIME_FORMAT")
