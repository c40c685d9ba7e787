"""Who guesses passwords waits: by name and address, by address alone, by name alone.

Eight failures lock a name at one address, which stops whoever tries many passwords on one account. Whoever tries few
passwords on many names, or on one name from many addresses, is stopped by the other two. These are wide: a whole office
may sit behind one address, and a name that strangers try must not be lost to its owner, who is let in by every address
that they came in by lately.
"""

from datetime import timedelta
from typing import Any

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from axes.models import AccessLog
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest

from maxclaw import clock

ADDRESS_FAILURES = 200
NAME_FAILURES = 100
KNOWN_FOR = timedelta(days=60)


class SignInThrottle(AxesDatabaseHandler):
    """Counts within AXES_COOLOFF_TIME, in three ways, the order that of AXES_LOCKOUT_PARAMETERS."""

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """The share of its limit that the fullest of the three counts has, in failures of name and address."""
        limits = [settings.AXES_FAILURE_LIMIT, ADDRESS_FAILURES, NAME_FAILURES]
        if self._is_known(request, credentials):
            limits[2:] = []
        counts = [
            attempts.aggregate(failures=Sum("failures_since_start"))["failures"] or 0
            for attempts in self.get_user_attempts(request, credentials)
        ]
        return max(count * settings.AXES_FAILURE_LIMIT // limit for count, limit in zip(counts, limits, strict=False))

    def reset_user_attempts(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """A sign-in forgives the failures of its own name and address. Those of others stay: whoever has an account
        could wipe out their guesses at others' with it."""
        count: int = self.filter_user_attempts(request, credentials)[0].delete()[0]
        return count

    def _is_known(self, request: HttpRequest, credentials: dict[str, Any] | None) -> bool:
        return AccessLog.objects.filter(
            username=get_client_username(request, credentials),
            ip_address=request.axes_ip_address,  # type: ignore[attr-defined]
            attempt_time__gt=clock.now() - KNOWN_FOR,
        ).exists()
