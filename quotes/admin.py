"""Every quote that was given: from where to where, at which levels, and who confirmed what and when.

Titles, the quoted words and the confirmed sentence, which names the target, are private text: they are read as such.
"""

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.db.models import DateTimeField, QuerySet, Value
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
            return queryset.filter(meta__quote__needs_confirm=self.value() == "true")
        return queryset


class Kind(admin.SimpleListFilter):
    title = _("what was quoted")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("message", _("a message")), ("channel", _("a conversation"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[GivenQuote]) -> QuerySet[GivenQuote]:
        return queryset.filter(meta__quote__kind=self.value()) if self.value() else queryset


@admin.register(GivenQuote)
class GivenQuoteAdmin(PrivateTextAdmin, BigTableAdmin):
    """The record of quotes. Nobody changes it: it is the rows that were sent."""

    what = PrivateReading.What.MESSAGE
    list_display = ("id", "created", "owner", "source", "source_level", "thread", "target_level", "confirmation")
    list_filter = (Confirmed, Kind)
    search_fields = ("=id", "thread__channel", "owner__username", "meta__quote__channel")
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
        said = {f"quote_{name}": KT(f"meta__quote__{name}") for name in OPEN_TO_STAFF}
        at = Cast(NullIf(KT("meta__quote__confirmed_at"), Value("")), DateTimeField())
        return rows.defer("text", "search_text", "wire", "meta").annotate(**said, quote_confirmed_at=at)

    @admin.display(description=_("source"))
    def source(self, row: Any) -> str:
        """The quoted conversation, as a link while it is there, and the message or the generation quoted."""
        place = (
            gettext("message %(id)s") % {"id": row.quote_message_id}
            if row.quote_kind == "message"
            else gettext("the conversation, generation %(id)s") % {"id": row.quote_generation}
        )
        thread_id = Thread.objects.filter(channel=row.quote_channel).values_list("pk", flat=True).first()
        if thread_id is None:
            return f"{row.quote_channel} · {place}"
        return format_html(
            '<a href="{}">{}</a> · {}',
            reverse(f"{self.admin_site.name}:threads_thread_change", args=[thread_id]),
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

    def noted(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        self.note(request, row, row.pk, row.pk)
        quote = row.meta["quote"]
        parts = [
            (gettext("title of the source"), quote.get("title")),
            (gettext("quoted text"), quote.get("text")),
            (gettext("what was confirmed"), quote.get("confirm_text")),
            (gettext("the user's own words"), row.text),
        ]
        return {"parts": [(heading, readable(text)) for heading, text in parts]}


def _level(scope: str, category: str) -> str:
    name = str(Thread.Scope(scope).label) if scope in Thread.Scope.values else str(scope)
    return f"{name}, {category}" if category else name


def _when(moment: datetime | None) -> str:
    if moment is None:
        return gettext("at an unknown time")
    return formats.date_format(timezone.localtime(moment), "DATETIME_FORMAT")
