"""What a person is told before a conversation becomes stricter: what comes along, what stays, who answers then.

The sentences come from here alone; the page shows them as they are.
"""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent.meter import model_choices
from llm import catalog
from quotes.models import GivenQuote
from threads.lifecycle import descendants
from threads.models import Thread


def categories() -> list[dict[str, Any]]:
    """The categories that a conversation can be put into: {"name", "meaning"}. One that no model reads is none: nothing
    could be said there."""
    return [
        {"name": name, "meaning": _who_answers(name, models)}
        for name in catalog.categories()
        if (models := model_choices(name))
    ]


def level_view(thread: Thread) -> dict[str, Any]:
    """The thread's level, the stricter ones it can have, and the consequences of each as sentences."""
    fixed = thread.kind == Thread.Kind.MAIN
    offered = [] if fixed or thread.category else categories()
    below = Thread.objects.filter(pk__in=descendants(thread), owner_id=thread.owner_id)
    return {
        "scope": thread.scope,
        "category": thread.category,
        "may_isolate": not fixed and thread.scope == Thread.Scope.OPEN,
        "categories": [category["name"] for category in offered],
        "isolating": [*isolating(), *_along(below.filter(scope=Thread.Scope.OPEN))],
        "labelling": {
            category["name"]: [
                _where_it_goes(category["name"]),
                category["meaning"],
                *_along(below.filter(category="")),
            ]
            for category in offered
        },
        "common": _common(thread, below),
    }


def isolating() -> list[str]:
    """What isolating means, for a conversation that begins so as well."""
    return [
        _("Its content reaches itself, its branches and its tasks alone: no other conversation, search or memory."),
        _("To hand something of it over you quote it, and confirm each time."),
    ]


def _where_it_goes(category: str) -> str:
    return _("Its content goes to conversations of the category “%(category)s” alone.") % {"category": category}


def _who_answers(category: str, models: list[str]) -> str:
    return _("Only models that may read “%(category)s” answer in it: %(models)s.") % {
        "category": category,
        "models": ", ".join(models),
    }


def _along(members: QuerySet[Thread]) -> list[str]:
    """Which come along: those that are not as strict by themselves."""
    count = members.count()
    if not count:
        return []
    return [
        ngettext("%(count)d task or branch of it comes along.", "%(count)d tasks and branches of it come along.", count)
        % {"count": count}
    ]


def _common(thread: Thread, below: QuerySet[Thread]) -> list[str]:
    members = dict(below.values_list("pk", "channel"))
    family, channels = [thread.pk, *members], [thread.channel, *members.values()]
    quoted = GivenQuote.objects.filter(owner_id=thread.owner_id, quote__channel__in=channels)
    given = quoted.exclude(thread_id__in=family).count()
    told = [
        _(
            "What was already sent elsewhere stays where it is: results of tasks, quotes, facts that other "
            "conversations were told, what models were asked."
        )
    ]
    if given:
        told.append(
            ngettext(
                "It was quoted once in another conversation.",
                "It was quoted %(count)d times in other conversations.",
                given,
            )
            % {"count": given}
        )
    told.append(_("This cannot be taken back."))
    return told
