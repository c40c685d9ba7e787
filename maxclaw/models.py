"""What belongs to the server as a whole, to no app and no user."""

from django.db import models
from django.utils.translation import gettext_lazy as _


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
