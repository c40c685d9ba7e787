"""How the admin looks, and what its sidebar leads to. Settings read this as UNFOLD; nothing here loads an app."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

Item = dict[str, Any]

# Words of the theme and of the queue that no catalogue of their own translates: named here, they are collected with
# ours.
THEME_WORDS = (
    gettext_noop("Add row"),
    gettext_noop("After you've created a user, you’ll be able to edit more user options."),
    gettext_noop("Apply Filters"),
    gettext_noop("Attempt count"),
    gettext_noop("Cancel"),
    gettext_noop("Dark"),
    gettext_noop("Expand row"),
    gettext_noop("Function"),
    gettext_noop("Go back"),
    gettext_noop("Light"),
    gettext_noop("More actions"),
    gettext_noop("Name"),
    gettext_noop("No data"),
    gettext_noop("No results matching your query"),
    gettext_noop(
        "Raw passwords are not stored, so there is no way to see this "
        "user’s password, but you can change the password using "
        '<a href="{}" class="text-primary-600 dark:text-primary-500">this form</a>.'
    ),
    gettext_noop("Run"),
    gettext_noop("Select action"),
    gettext_noop("Select action to run"),
    gettext_noop("Select all rows"),
    gettext_noop("Select record"),
    gettext_noop("Select value"),
    gettext_noop("Started at"),
    gettext_noop("Stopped at"),
    gettext_noop("Submit"),
    gettext_noop("System"),
    gettext_noop("Task id"),
    gettext_noop("Toggle password visibility"),
    gettext_noop("Type to search"),
)


def holds(*permissions: str) -> Callable[[HttpRequest], bool]:
    """Whether the signed-in person has all of the permissions."""
    return lambda request: request.user.has_perms(permissions)


def _stands_at(link: str, own_pages: tuple[str, ...]) -> Callable[[HttpRequest], bool]:
    """Whether the page is the list at `link` or one of its rows; pages of their own, and what lies below them, have
    entries of their own."""

    def stands(request: HttpRequest) -> bool:
        return request.path.startswith(link) and not request.path.startswith(own_pages)

    return stands


@cache
def navigation() -> list[dict[str, Any]]:
    """The sidebar, with every address looked up once: each page asks for all of them several times."""
    health, costs, memory, comparison, review = own_pages = (
        reverse("admin:agent_health"),
        reverse("admin:llm_modelcall_costs"),
        reverse("admin:memory_fact_overview"),
        reverse("admin:shadow_shadowrun_comparison"),
        reverse("admin:shadow_shadowfactproposal_review"),
    )

    def rows(title: Any, icon: str, app: str, model: str) -> Item:
        link = reverse(f"admin:{app}_{model}_changelist")
        return {
            "title": title,
            "icon": icon,
            "link": link,
            "active": _stands_at(link, own_pages),
            "permission": holds(f"{app}.view_{model}"),
        }

    return [
        {
            "items": [
                {"title": _("Overview"), "icon": "dashboard", "link": reverse("admin:index")},
                {
                    "title": _("Health"),
                    "icon": "monitor_heart",
                    "link": health,
                    "permission": holds("threads.view_thread", "django_q.view_ormq"),
                },
                {
                    "title": _("Costs"),
                    "icon": "payments",
                    "link": costs,
                    "permission": holds("llm.view_modelcall"),
                },
            ],
        },
        {
            "title": _("Conversations"),
            "items": [
                rows(_("Conversations"), "forum", "threads", "thread"),
                rows(_("Messages"), "chat", "threads", "message"),
                rows(_("Generations"), "layers", "threads", "generation"),
                rows(_("Quotes"), "format_quote", "quotes", "givenquote"),
                rows(_("Private text read"), "visibility", "threads", "privatereading"),
            ],
        },
        {
            "title": _("Memory"),
            "items": [
                {
                    "title": _("Coverage and use"),
                    "icon": "insights",
                    "link": memory,
                    "permission": holds("memory.view_fact"),
                },
                rows(_("Facts"), "psychology", "memory", "fact"),
                rows(_("Memory log"), "edit_note", "memory", "factlog"),
                rows(_("Episodes"), "auto_stories", "memory", "episode"),
            ],
        },
        {
            "title": _("Shadow turns"),
            "items": [
                {
                    "title": _("Beside the steward"),
                    "icon": "compare_arrows",
                    "link": comparison,
                    "permission": holds("shadow.view_shadowrun"),
                },
                {
                    "title": _("Judge proposals"),
                    "icon": "gavel",
                    "link": review,
                    "permission": holds(
                        "shadow.view_shadowfactproposal", "shadow.add_proposalreview", "threads.read_private"
                    ),
                },
                rows(_("Shadow runs"), "dark_mode", "shadow", "shadowrun"),
                rows(_("Proposals"), "lightbulb", "shadow", "shadowfactproposal"),
                rows(_("Verdicts"), "fact_check", "shadow", "proposalreview"),
            ],
        },
        {
            "title": _("Turns"),
            "items": [
                rows(_("Waiting items"), "inbox", "agent", "inboxitem"),
                rows(_("Turns"), "autorenew", "agent", "taskframe"),
                rows(_("Tool calls"), "build", "agent", "toolcall"),
                rows(_("Overflows"), "compress", "agent", "overflowevent"),
                rows(_("Turn events"), "list_alt", "agent", "turnevent"),
                rows(_("Imports"), "upload_file", "agent", "importjob"),
                rows(_("Imported conversations"), "move_to_inbox", "agent", "importedconversation"),
            ],
        },
        {
            "title": _("Models"),
            "items": [
                rows(_("Model calls"), "bolt", "llm", "modelcall"),
                rows(_("Request headers"), "description", "llm", "requestheader"),
            ],
        },
        {
            "title": _("Background queue"),
            "items": [
                rows(_("Queued tasks"), "pending_actions", "django_q", "ormq"),
                rows(_("Failed tasks"), "error", "django_q", "failure"),
                rows(_("Finished tasks"), "task_alt", "django_q", "success"),
                rows(_("Schedule"), "schedule", "django_q", "schedule"),
                rows(_("Signs of life"), "ecg_heart", "maxclaw", "heartbeat"),
            ],
        },
        {
            "title": _("People"),
            "items": [
                rows(_("Accounts"), "person", "accounts", "user"),
                rows(_("Groups"), "group", "auth", "group"),
                rows(_("Failed sign-ins"), "lock", "axes", "accessattempt"),
                rows(_("Sign-ins"), "login", "axes", "accesslog"),
                rows(_("What staff changed"), "history", "admin", "logentry"),
            ],
        },
    ]


# The chat page's green, in steps; its middle carries white text at 4.5:1.
PRIMARY = {
    "50": "#f0f7f4",
    "100": "#dcece6",
    "200": "#bbdacf",
    "300": "#8ec1b1",
    "400": "#7cc9b2",
    "500": "#3f9d86",
    "600": "#1f6b5a",
    "700": "#1b5c4d",
    "800": "#184a3f",
    "900": "#153d35",
    "950": "#0a231e",
}
BASE = {
    "50": "#f7f8f7",
    "100": "#eff1ef",
    "200": "#e1e5e2",
    "300": "#c9cfcb",
    "400": "#a7b0ab",
    "500": "#646d68",
    "600": "#4f5753",
    "700": "#3a413d",
    "800": "#282e2b",
    "900": "#191d1b",
    "950": "#101312",
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "MaxClaw",
    "SITE_HEADER": "MaxClaw",
    "SITE_SUBHEADER": _("Administration"),
    "SITE_URL": reverse_lazy("chat"),
    "SITE_ICON": lambda request: static("chat/icon.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("chat/icon.svg")},
    ],
    "SHOW_VIEW_ON_SITE": False,
    "COLORS": {"primary": PRIMARY, "base": BASE},
    "STYLES": [
        lambda request: static("console/console.css"),
        lambda request: static("console/theme.css"),
        lambda request: static("console/shadow.css"),
    ],
    "SCRIPTS": [lambda request: static("console/console.js")],
    "ACCOUNT": {
        "navigation": [
            {"title": _("Your account"), "link": reverse_lazy("account")},
        ],
    },
    "SIDEBAR": {"show_search": False, "navigation": lambda request: navigation()},
}
