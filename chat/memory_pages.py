"""A person's own memory: what is remembered of them, from which words; correct it, set it aside, have it forgotten."""

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.days import local
from accounts.downloads import json_lines
from accounts.models import User
from agent.refusals import Refused
from chat import remembering
from chat.presentation import piece_as_read
from maxclaw import clock
from maxclaw.text import visible
from memory import erasure
from memory.access import NoSuchFact, access_fact
from memory.forms import CorrectionForm, as_it_reads
from memory.models import Fact, FactEvidence
from memory.remembered import EARLIER, NOW, SORTS, Remembered, Words, history, remembered, uses, with_proofs
from threads.access import parse_message_id

CONFLICT, BAD_REQUEST = 409, 400
SORT_NAMES: dict[str, Promise] = {
    Fact.Kind.EVENT: gettext_lazy("Event"),
    Fact.Kind.POINTER: gettext_lazy("Where a document is"),
    Fact.Aspect.FACT: gettext_lazy("About you"),
    Fact.Aspect.PREFERENCE: gettext_lazy("Preference"),
    Fact.Aspect.DECISION: gettext_lazy("Decision"),
    Fact.Aspect.CORRECTION: gettext_lazy("Correction"),
    Fact.Aspect.IDENTITY: gettext_lazy("Who you are"),
}
TONE_NAMES: dict[str, Promise] = {
    Fact.Tone.REMARK: gettext_lazy("said in passing"),
    Fact.Tone.DECISION: gettext_lazy("decided"),
}
PROOF_NAMES: dict[str, Promise] = {
    FactEvidence.Kind.MAX_STATED: gettext_lazy("You said in"),
    FactEvidence.Kind.MAX_ACCEPTED: gettext_lazy("Said to you in"),
    FactEvidence.Kind.TOOL_VERIFIED: gettext_lazy("Found with a tool in"),
    FactEvidence.Kind.OBSERVED_OUTCOME: gettext_lazy("Seen from what came of"),
}


def shown(found: Remembered) -> dict[str, Any]:
    """A fact as the templates write it."""
    fact = found.fact
    return {
        "fact": fact,
        "said": found.said,
        "sort": SORT_NAMES[fact.aspect or fact.kind],
        "tone": TONE_NAMES[fact.tone],
        "proofs": [
            {
                **vars(proof),
                "words": _as_read(proof.words),
                "accepted": _as_read(proof.accepted),
                "label": PROOF_NAMES[proof.kind],
                "accepted_label": _("and you agreed in"),
            }
            for proof in found.proofs
        ],
    }


def _as_read(words: Words | None) -> Words | None:
    """The words as they are shown, with the day and time that they had for the person."""
    if words is None:
        return None
    said = local(words.created, timezone.get_current_timezone())
    return replace(words, created=said, excerpt=piece_as_read(words.role, words.excerpt))


@require_safe
@never_cache
@login_required
def memory_page(request: HttpRequest) -> HttpResponse:
    """What is remembered, newest first, as the address asks for it."""
    query = visible(request.GET.get("q", "")).strip()
    sort = request.GET.get("sort", "")
    asked = {
        "q": query,
        "sort": sort if sort in SORTS else "",
        "shown": EARLIER if request.GET.get("shown") == EARLIER else NOW,
    }
    before = parse_message_id(request.GET.get("before", ""))
    page = remembered(_user(request), query=query, sort=asked["sort"], shown=asked["shown"], before=before)
    kept = {name: value for name, value in asked.items() if value not in ("", NOW)}
    context = {
        "query": query,
        "sort": asked["sort"],
        "shown": asked["shown"],
        "sorts": [(sort, SORT_NAMES[sort]) for sort in SORTS],
        "facts": [shown(found) for found in page.facts],
        "before": before,
        "newest": _address(kept),
        "older": page.next_before and _address({**kept, "before": page.next_before}),
    }
    return render(request, "chat/memory.html", context)


@require_safe
@never_cache
@login_required
def fact_page(request: HttpRequest, fact: int) -> HttpResponse:
    """One fact: what it rests on, its versions, and what can be done about it."""
    return _fact_page(request, _fact(request, fact))


@login_required
@require_POST
def correct_fact(request: HttpRequest, fact: int) -> HttpResponse:
    """Put it right. The corrected version stands in its place."""
    old = _fact(request, fact)
    form = CorrectionForm(request.POST)
    if not form.is_valid():
        return _fact_page(request, old, form, status=BAD_REQUEST)
    try:
        new = remembering.correct(_user(request), old, form.cleaned_data)
    except Refused as refusal:
        return _fact_page(request, old, form, refusal.sentence, CONFLICT)
    messages.success(
        request, _("Saved.") if new.pk == old.pk else _("Corrected. The version before can be brought back.")
    )
    return redirect("memory-fact", new.pk)


@login_required
@require_POST
def set_fact_aside(request: HttpRequest, fact: int) -> HttpResponse:
    """Use it no more, until it is brought back."""
    return _done(request, _fact(request, fact), remembering.set_aside, _("Set aside. No conversation is given it now."))


@login_required
@require_POST
def bring_fact_back(request: HttpRequest, fact: int) -> HttpResponse:
    """Let what was set aside or replaced count again."""
    return _done(request, _fact(request, fact), remembering.bring_back, _("Brought back: it counts again."))


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def forget_fact(request: HttpRequest, fact: int) -> HttpResponse:
    """What goes and what stays; after a POST it is gone, and the page lists what stayed."""
    old = _fact(request, fact)
    if request.method != "POST":
        return render(
            request, "chat/memory_forget.html", {"fact": old, "parting": remembering.foresee(_user(request), old)}
        )
    try:
        parting = remembering.forget(_user(request), old)
    except Refused:
        raise Http404 from None
    return render(request, "chat/memory_forgotten.html", {"parting": parting})


@login_required
@require_POST
def export_memory(request: HttpRequest) -> HttpResponseBase:
    """The memory as JSON lines. A POST, so that no other site can have it made."""
    user = _user(request)
    day = user.local(clock.now()).date()
    return json_lines(erasure.export(user), f"maxclaw-{user.username}-memory-{day}.jsonl")


def _fact_page(
    request: HttpRequest, fact: Fact, form: CorrectionForm | None = None, problem: str = "", status: int = 200
) -> HttpResponse:
    user = _user(request)
    [found] = with_proofs(user, [fact])
    newer, earlier = history(user, fact)
    context = {
        "remembered": shown(found),
        "fact": fact,
        "form": form or CorrectionForm(initial=as_it_reads(fact)),
        "problem": problem,
        "newer": newer,
        "earlier": earlier,
        "uses": uses(fact),
    }
    return render(request, "chat/memory_fact.html", context, status=status)


def _done(request: HttpRequest, fact: Fact, act: Any, said: str) -> HttpResponse:
    try:
        changed = act(_user(request), fact)
    except Refused as refusal:
        return _fact_page(request, fact, problem=refusal.sentence, status=CONFLICT)
    messages.success(request, said)
    return redirect("memory-fact", changed.pk)


def _address(asked: dict[str, Any]) -> str:
    return reverse("memory") + (f"?{urlencode(asked)}" if asked else "")


def _fact(request: HttpRequest, fact_id: int) -> Fact:
    try:
        return access_fact(_user(request), fact_id)
    except NoSuchFact:
        raise Http404 from None


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
