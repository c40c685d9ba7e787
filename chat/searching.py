"""A person's search over their own conversations: what the page and the REST API share, and the page."""

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from agent.refusals import Refused
from chat.api import STATUS_OF_CODE
from chat.presentation import piece_as_read
from maxclaw.text import visible
from memory.hits import Hits, search_hits
from threads.history import NOT_FOUND, HistoryRefused
from threads.models import Thread
from threads.search_terms import EMPTY_QUERY, LONG_QUERY, SHORT_QUERY
from threads.visibility import Level, Viewer

CONFLICT = 409


def search_own(user: User, query: str, channel: str = "") -> Hits:
    """What a person finds from outside any conversation: in one of theirs, or in all that are open and have no
    category. Raises Refused."""
    viewer = Viewer(user.pk, None, Level())
    try:
        return async_to_sync(search_hits)(viewer, query, channel or None)
    except HistoryRefused as refusal:
        raise _refused(str(refusal)) from None


def _refused(reason: str) -> Refused:
    """The refusal in the person's language."""
    if reason == NOT_FOUND:
        return Refused("no-such-thread", _("There is no such conversation. It may have been deleted."))
    sentence = {
        EMPTY_QUERY: _("Say what to search for."),
        SHORT_QUERY: _(
            "The query is too short: give at least 3 characters, or 2 in Chinese, Japanese, Korean or Thai."
        ),
        LONG_QUERY.format(limit=settings.MESSAGE_MAX_CHARS): _(
            "The query is too long: give at most %(limit)s characters."
        )
        % {"limit": f"{settings.MESSAGE_MAX_CHARS:,}"},
    }.get(reason)
    if sentence is not None:
        return Refused("bad-query", sentence)
    return Refused("level", _("This conversation is isolated or has a category: it is not searched from outside."))


@require_safe
@never_cache
@login_required
def search_page(request: HttpRequest) -> HttpResponse:
    """A form, and what was found for the query in the address."""
    user = request.user
    assert isinstance(user, User)
    query = visible(request.GET.get("q", ""))
    channel = visible(request.GET.get("channel", ""))
    found, problem, status = None, "", 200
    if query.strip() or channel:
        try:
            found = search_own(user, query, channel)
        except Refused as refusal:
            problem, status = refusal.sentence, STATUS_OF_CODE.get(refusal.code, CONFLICT)
    main = Thread.objects.filter(owner=user, kind=Thread.Kind.MAIN).values_list("channel", flat=True).first()
    context = {
        "query": query,
        "channel": channel,
        "found": found,
        "hits": [(hit, user.local(hit.created), piece_as_read(hit.role, hit.excerpt)) for hit in found.hits]
        if found
        else [],
        "problem": problem,
        "main": main,
    }
    return render(request, "chat/search.html", context, status=status)
