"""Staff's hand on facts: retire, restore, correct and merge. Each says why, and the log keeps who did what."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from memory import changing
from memory.admin_reading import note_facts, words_of
from memory.fact_drafts import fingerprint_of
from memory.fact_rows import level_of
from memory.forms import OVERTAKEN, MergeForm, ReasonForm, StaffCorrectionForm, corrected
from memory.models import Fact
from memory.refusals import FactRefused
from threads.access import parse_message_id
from threads.private_reading import may_read

PERMISSION = "memory.change_fact"
ACTIONS = ("retire", "restore", "correct")
MERGED_AT_ONCE = 20
DONE: dict[str, Promise] = {
    "retire": _("The fact was retired."),
    "restore": _("The fact was restored: it stands as a new one."),
    "correct": _("The fact was corrected: the new one stands in its place."),
    "merge": _("The facts were merged into a new one."),
}


def staff_of(request: HttpRequest) -> User:
    """Whoever is at the console."""
    assert isinstance(request.user, User)
    return request.user


def offered(request: HttpRequest, fact: Fact) -> dict[str, Any]:
    """What the fact's page offers to the person who looks at it: addresses of actions, blank where there is none."""
    reads = may_read(staff_of(request))
    may = request.user.has_perm(PERMISSION)
    active = fact.status == Fact.Status.ACTIVE
    return {
        "read_url": _address("read", fact) if reads else "",
        "retire_url": _address("retire", fact) if may and active else "",
        "restore_url": _address("restore", fact) if may and not active else "",
        "correct_url": _address("correct", fact) if may and active and reads else "",
        "back_url": reverse("admin:memory_fact_change", args=[fact.pk]),
    }


def change(console: Any, request: HttpRequest, fact: Fact, action: str) -> HttpResponse:
    """Do one of ACTIONS to a fact. Whoever left out the reason is asked again, with what was typed."""
    staff = staff_of(request)
    if not request.user.has_perm(PERMISSION) or (action == "correct" and not may_read(staff)):
        raise PermissionDenied
    form = (StaffCorrectionForm if action == "correct" else ReasonForm)(request.POST)
    if not form.is_valid():
        return _ask_again(console, request, form, offered(request, fact)["back_url"])
    typed = form.cleaned_data
    try:
        if action == "correct":
            said = corrected(fact, typed)
            fact = changing.correct(fact, said, actor=staff, writer=Fact.Writer.STAFF, reason=typed["reason"])
        else:
            fact = getattr(changing, action)(fact, actor=staff, writer=Fact.Writer.STAFF, reason=typed["reason"])
    except FactRefused:
        return _ask_again(console, request, form, offered(request, fact)["back_url"], str(OVERTAKEN))
    return _done(console, request, fact, action)


def chosen_ids(request: HttpRequest) -> list[int]:
    """The facts that the form of a merge names."""
    ids = map(parse_message_id, request.POST.getlist("fact"))
    return [pk for pk in ids if pk is not None][: MERGED_AT_ONCE + 1]


def ask_to_merge(console: Any, request: HttpRequest, facts: list[Fact]) -> HttpResponse | None:
    """The form that merges what was chosen in the list; their words are read for it, and that is noted."""
    problem = _unmergeable(facts)
    if problem:
        console.message_user(request, problem, messages.ERROR)
        return None
    note_facts(staff_of(request), facts)
    words = words_of(facts)
    return _merge_page(console, request, words, MergeForm(initial={"text": words[-1].text}))


def merge(console: Any, request: HttpRequest, facts: list[Fact]) -> HttpResponse:
    """Merge facts into one with the words that were typed."""
    staff = staff_of(request)
    if not console.has_merge_permission(request):
        raise PermissionDenied
    back = reverse("admin:memory_fact_changelist")
    problem = _unmergeable(facts)
    if problem:
        console.message_user(request, problem, messages.ERROR)
        return HttpResponseRedirect(back)
    form = MergeForm(request.POST)
    refused = ""
    if form.is_valid():
        text, reason = form.cleaned_data["text"], form.cleaned_data["reason"]
        try:
            merged = changing.merge(facts, text, actor=staff, writer=Fact.Writer.STAFF, reason=reason)
        except FactRefused:
            refused = str(OVERTAKEN)
        else:
            return _done(console, request, merged, "merge")
    note_facts(staff, facts)
    return _merge_page(console, request, words_of(facts), form, refused)


def _unmergeable(facts: list[Fact]) -> str:
    """Why these cannot be merged, blank where they can."""
    if not 2 <= len(facts) <= MERGED_AT_ONCE:
        return gettext("Choose two to %(most)d facts to merge.") % {"most": MERGED_AT_ONCE}
    if len({fact.owner_id for fact in facts}) > 1:
        return gettext("Facts of different people are not merged.")
    if any(fact.status != Fact.Status.ACTIVE for fact in facts):
        return gettext("Only active facts are merged. Restore the others first.")
    if len({level_of(fact) for fact in facts}) > 1:
        return gettext("These facts are not seen in the same places, so they cannot become one.")
    if len({(fact.kind, fact.aspect, fingerprint_of(fact.applies_to)) for fact in facts}) > 1:
        return gettext("Facts of different kinds, or that apply to different things, stand side by side.")
    return ""


def _merge_page(
    console: Any, request: HttpRequest, facts: list[Fact], form: MergeForm, refused: str = ""
) -> HttpResponse:
    context = {
        **console.admin_site.each_context(request),
        "title": _("Merge facts"),
        "opts": console.opts,
        "facts": facts,
        "form": form,
        "refused": refused,
        "action_url": reverse("admin:memory_fact_merge"),
        "back_url": reverse("admin:memory_fact_changelist"),
    }
    return TemplateResponse(request, "admin/console/fact_form.html", context)


def _ask_again(console: Any, request: HttpRequest, form: Any, back_url: str, refused: str = "") -> HttpResponse:
    context = {
        **console.admin_site.each_context(request),
        "title": _("Nothing was changed"),
        "opts": console.opts,
        "form": form,
        "refused": refused,
        "action_url": request.path,
        "back_url": back_url,
    }
    return TemplateResponse(request, "admin/console/fact_form.html", context)


def _done(console: Any, request: HttpRequest, fact: Fact, action: str) -> HttpResponse:
    """Leave a line in what staff changed, without a word of the fact, and show the fact that stands now."""
    console.log_change(request, fact, str(DONE[action]))
    console.message_user(request, DONE[action], messages.SUCCESS)
    return HttpResponseRedirect(reverse("admin:memory_fact_change", args=[fact.pk]))


def _address(name: str, fact: Fact) -> str:
    return reverse(f"admin:memory_fact_{name}", args=[fact.pk])
