"""Addresses of the pages and of the REST API."""

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LogoutView
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from chat import (
    api,
    api_details,
    api_facts,
    api_levels,
    api_quotes,
    api_revising,
    api_search,
    importing,
    memory_pages,
    pages,
    searching,
)

# The browsable schema styles its elements in place. Its script comes from an address of its own.
schema_page = csp_update({"style-src": [UNSAFE_INLINE]})(
    login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema"))
)

conversation = [
    path("", api.ThreadDetail.as_view(), name="api-thread"),
    path("archive/", api.ThreadArchive.as_view(), name="api-archive"),
    path("unarchive/", api.ThreadUnarchive.as_view(), name="api-unarchive"),
    path("undelete/", api_revising.ThreadUndelete.as_view(), name="api-undelete"),
    path("messages/", api.MessageList.as_view(), name="api-messages"),
    path("messages/<int:message>/", api_details.MessageText.as_view(), name="api-text"),
    path("messages/<int:message>/edit/", api_revising.MessageEdit.as_view(), name="api-edit"),
    path("messages/<int:message>/rewind/", api_revising.MessageRewind.as_view(), name="api-rewind"),
    path("messages/<int:message>/fork/", api_revising.MessageFork.as_view(), name="api-fork"),
    path("undo-rewind/", api_revising.ThreadUndoRewind.as_view(), name="api-undo-rewind"),
    path("retry/", api_revising.ThreadRetry.as_view(), name="api-retry"),
    path("queued/<int:item>/", api_revising.QueuedItem.as_view(), name="api-queued"),
    path("stop/", api.ThreadStop.as_view(), name="api-stop"),
    path("answer/", api.ThreadAnswer.as_view(), name="api-answer"),
    path("model/", api_revising.ThreadModel.as_view(), name="api-model"),
    path("level/", api_levels.ThreadLevel.as_view(), name="api-level"),
    path("renew/", api_revising.ThreadRenew.as_view(), name="api-renew"),
    path("meter/", api_details.ThreadMeter.as_view(), name="api-meter"),
    path("generations/<int:ordinal>/", api_details.GenerationSummary.as_view(), name="api-generation"),
]

memory = [
    path("", memory_pages.memory_page, name="memory"),
    path("export/", memory_pages.export_memory, name="memory-export"),
    path("<int:fact>/", memory_pages.fact_page, name="memory-fact"),
    path("<int:fact>/correct/", memory_pages.correct_fact, name="memory-correct"),
    path("<int:fact>/set-aside/", memory_pages.set_fact_aside, name="memory-set-aside"),
    path("<int:fact>/bring-back/", memory_pages.bring_fact_back, name="memory-bring-back"),
    path("<int:fact>/forget/", memory_pages.forget_fact, name="memory-forget"),
]

facts = [
    path("", api_facts.FactList.as_view(), name="api-facts"),
    path("<int:fact>/", api_facts.FactDetail.as_view(), name="api-fact"),
    path("<int:fact>/correct/", api_facts.FactCorrect.as_view(), name="api-fact-correct"),
    path("<int:fact>/set-aside/", api_facts.FactSetAside.as_view(), name="api-fact-set-aside"),
    path("<int:fact>/bring-back/", api_facts.FactBringBack.as_view(), name="api-fact-bring-back"),
    path("<int:fact>/forget/", api_facts.FactForget.as_view(), name="api-fact-forget"),
]

urlpatterns = [
    path("", pages.chat_page, name="chat"),
    path("c/<slug:channel>/", pages.chat_page, name="conversation"),
    path("login/", pages.SignInView.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("import/", importing.import_page, name="import"),
    path("import/<int:job>/", importing.import_state, name="import-state"),
    path("import/<int:job>/cancel/", importing.cancel_import, name="import-cancel"),
    path("memory/", include(memory)),
    path("search/", searching.search_page, name="search"),
    path("language/", pages.choose_language, name="set_language"),
    path("api/threads/", api.ThreadList.as_view(), name="api-threads"),
    path("api/threads/<slug:channel>/", include(conversation)),
    path("api/facts/", include(facts)),
    path("api/quotes/preview/", api_quotes.QuotePreview.as_view(), name="api-quote-preview"),
    path("api/search/", api_search.Search.as_view(), name="api-search"),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/", schema_page, name="api-docs"),
]
