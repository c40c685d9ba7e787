"""What belongs to the server as a whole, to no app and no user."""

from django.db import models
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from maxclaw import clock


class Heartbeat(models.Model):
    """The last sign of life of one background process: `worker:HOST:PID`, named after its supervisor."""

    name = models.CharField(_("name"), max_length=200, primary_key=True)
    # The database's clock, the one that all machines share.
    beat_at = models.DateTimeField(_("last beat"))

    class Meta:
        verbose_name = _("heartbeat")
        verbose_name_plural = _("heartbeats")

    def __str__(self) -> str:
        return self.name


class Erasure(models.Model):
    """Something was erased, in the transaction that wrote this row. Files are rewritten from when it is due."""

    asked = models.DateTimeField(_("asked"))
    due = models.DateTimeField(_("due"))

    class Meta:
        verbose_name = _("erasure")
        verbose_name_plural = _("erasures")

    def __str__(self) -> str:
        return str(self.asked)


class StaleFile(models.Model):
    """A table that is to be rewritten, or what stands beside tables: `maxclaw/rewriting.py`."""

    name = models.CharField(_("name"), max_length=63, primary_key=True)
    # The number of a transaction: rows that older ones deleted must not be in the file afterwards.
    before = models.BigIntegerField(_("before"))
    since = models.DateTimeField(_("since"), default=clock.now, db_default=Now())

    class Meta:
        verbose_name = _("stale file")
        verbose_name_plural = _("stale files")

    def __str__(self) -> str:
        return self.name
