"""What a load balancer or a supervisor asks: does the process live, can it serve, does the work get done.

Open to everybody, so the answers say no more than that.
"""

from django.db import Error
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from maxclaw.heartbeat import STALE_SECONDS, newest_worker_age
from maxclaw.preparation import missing_migrations


@require_safe
@never_cache
def live(request: HttpRequest) -> JsonResponse:
    """200 as long as this process answers at all."""
    return JsonResponse({"live": True})


@require_safe
@never_cache
def ready(request: HttpRequest) -> JsonResponse:
    """200 when the database answers and has every migration, else 503 with the reason."""
    try:
        missing = missing_migrations()
    except Error:
        return JsonResponse({"ready": False, "reason": "the database does not answer"}, status=503)
    if missing:
        return JsonResponse({"ready": False, "reason": f"{missing} migrations are missing"}, status=503)
    return JsonResponse({"ready": True})


@require_safe
@never_cache
def work(request: HttpRequest) -> JsonResponse:
    """200 when some background worker showed a sign of life within STALE_SECONDS, else 503."""
    try:
        seconds = newest_worker_age()
    except Error:
        return JsonResponse({"working": False, "reason": "the database does not answer"}, status=503)
    working = seconds is not None and seconds <= STALE_SECONDS
    return JsonResponse(
        {"working": working, "seconds_since_heartbeat": None if seconds is None else round(seconds, 1)},
        status=200 if working else 503,
    )


urlpatterns = [
    path("live", live, name="health-live"),
    path("ready", ready, name="health-ready"),
    path("work", work, name="health-work"),
]
