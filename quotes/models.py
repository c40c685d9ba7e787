"""A quote lives in the words that carry it. This app has no table of its own: what it knows of them is a view."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agent.models import InboxItem
from threads.models import Message, Thread


class GivenQuote(models.Model):
    """A quote that was given, once, however often editing, retrying and branching repeated it since: `quote` says what,
    from where, at which levels, and what was confirmed, `words` what the user said with it.

    It stands in the first row that carries it (`message`) or, where none does yet, in what waits (`item`). What was
    taken back before a model read it was not given.
    """

    id = models.CharField(primary_key=True, max_length=40)
    created = models.DateTimeField()
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.DO_NOTHING, related_name="+")
    thread = models.ForeignKey(Thread, on_delete=models.DO_NOTHING, related_name="+")
    message = models.ForeignKey(Message, null=True, on_delete=models.DO_NOTHING, related_name="+")
    item = models.ForeignKey(
        InboxItem, null=True, on_delete=models.DO_NOTHING, related_name="+", verbose_name=_("waiting item")
    )
    quote = models.JSONField()
    words = models.TextField(_("the user's own words"))

    class Meta:
        managed = False
        db_table = "quotes_givenquote"
        verbose_name = _("quote")
        verbose_name_plural = _("quotes")

    def __str__(self) -> str:
        return gettext("quote %(number)s") % {"number": self.pk}
