"""Addresses of the pages and of the REST API."""

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LogoutView
from django.urls import path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from chat import api, pages

# The browsable schema styles its elements in place. Its script comes from an address of its own.
schema_page = csp_update({"style-src": [UNSAFE_INLINE]})(
    login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema"))
)

urlpatterns = [
    path("", pages.chat_page, name="chat"),
    path("c/<slug:channel>/", pages.chat_page, name="conversation"),
    path("login/", pages.SignInView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("language/", pages.choose_language, name="set_language"),
    path("api/threads/", api.ThreadList.as_view(), name="api-threads"),
    path("api/threads/<slug:channel>/", api.ThreadDetail.as_view(), name="api-thread"),
    path("api/threads/<slug:channel>/archive/", api.ThreadArchive.as_view(), name="api-archive"),
    path("api/threads/<slug:channel>/unarchive/", api.ThreadUnarchive.as_view(), name="api-unarchive"),
    path("api/threads/<slug:channel>/messages/", api.MessageList.as_view(), name="api-messages"),
    path("api/threads/<slug:channel>/stop/", api.ThreadStop.as_view(), name="api-stop"),
    path("api/threads/<slug:channel>/answer/", api.ThreadAnswer.as_view(), name="api-answer"),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/", schema_page, name="api-docs"),
]
