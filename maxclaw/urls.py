"""Addresses of the whole server."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [
    path("health/", include("maxclaw.health")),
    path("admin/", admin.site.urls),
    path("account/", include("accounts.urls")),
    path("", include("chat.urls")),
]
