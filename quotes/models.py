"""A quote lives in the user row that carries it. This app has no table of its own: what it knows of a row is a view."""

from typing import ClassVar

from django.db.models import Manager, QuerySet
from django.utils.translation import gettext_lazy as _

from threads.models import Message


class QuoteManager(Manager["GivenQuote"]):
    def get_queryset(self) -> QuerySet["GivenQuote"]:
        # A copy within a branch or after a rewind repeats the quote, and is none that was given.
        return super().get_queryset().filter(meta__has_key="quote", copied_from__isnull=True)


class GivenQuote(Message):
    """A user row that quotes: `meta["quote"]` says what, from where, at which levels, and what was confirmed."""

    objects: ClassVar[Manager["GivenQuote"]] = QuoteManager()

    class Meta:
        proxy = True
        verbose_name = _("quote")
        verbose_name_plural = _("quotes")

    def __str__(self) -> str:
        return f"quote in m:{self.pk}"
