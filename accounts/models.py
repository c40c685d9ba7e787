"""The user: who owns every row above."""

from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.core.exceptions import ValidationError
from django.db import connection, models
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


def release_connection() -> None:
    """Hand this thread's connection back to the pool, if it came from one and no transaction is open in it. The next
    query takes another."""
    if connection.settings_dict["OPTIONS"].get("pool") and not connection.in_atomic_block:
        connection.close()


class User(AbstractUser):
    """A person with an account. Days and relative dates follow `time_zone`, pages follow `language`."""

    time_zone = models.CharField(_("time zone"), max_length=64, default=default_time_zone, validators=[check_time_zone])
    language = models.CharField(_("language"), max_length=10, choices=settings.LANGUAGES, default=default_language)

    class Meta(AbstractUser.Meta):
        swappable = "AUTH_USER_MODEL"

    def check_password(self, raw_password: str | None) -> bool:
        """As in Django, whose hash takes long on purpose: nobody waits meanwhile for this thread's connection."""
        release_connection()
        return super().check_password(raw_password)

    def set_password(self, raw_password: str | None) -> None:
        """The same. A sign-in with a name that there is none of sets one in vain, to take as long."""
        release_connection()
        super().set_password(raw_password)

    @property
    def zone(self) -> ZoneInfo:
        """The user's time zone."""
        return ZoneInfo(self.time_zone)

    def local(self, moment: datetime) -> datetime:
        """A moment (aware) as it was for this person: its date is their day."""
        return days.local(moment, self.time_zone)
