"""The user: who owns every row above."""

from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts import days


def check_time_zone(name: str) -> None:
    """Refuse a name that is no IANA time zone."""
    if name not in available_timezones():
        raise ValidationError(_("%(name)s is not a known time zone."), params={"name": name})


def default_time_zone() -> str:
    return settings.TIME_ZONE


def default_language() -> str:
    return settings.LANGUAGE_CODE


class User(AbstractUser):
    """A person with an account. Days and relative dates follow `time_zone`, pages follow `language`."""

    time_zone = models.CharField(_("time zone"), max_length=64, default=default_time_zone, validators=[check_time_zone])
    language = models.CharField(_("language"), max_length=10, choices=settings.LANGUAGES, default=default_language)

    class Meta(AbstractUser.Meta):
        swappable = "AUTH_USER_MODEL"

    @property
    def zone(self) -> ZoneInfo:
        """The user's time zone."""
        return ZoneInfo(self.time_zone)

    def local(self, moment: datetime) -> datetime:
        """A moment (aware) as it was for this person: its date is their day."""
        return days.local(moment, self.time_zone)
