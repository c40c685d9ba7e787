"""What every page must pass in a browser: no serious violation of accessibility, no error, no request elsewhere."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ConsoleMessage, Page

SERIOUS = ("serious", "critical")
# What axe-core ranks below those, and takes its time for.
LESS_THAN_SERIOUS = (
    *("region", "heading-order", "page-has-heading-one", "empty-heading", "skip-link", "image-redundant-alt"),
    *("landmark-one-main", "landmark-unique", "landmark-main-is-top-level", "landmark-banner-is-top-level"),
    *("landmark-complementary-is-top-level", "landmark-contentinfo-is-top-level", "landmark-no-duplicate-banner"),
    *("landmark-no-duplicate-contentinfo", "landmark-no-duplicate-main"),
)
ALL_RULES = {"resultTypes": ["violations"], "rules": {name: {"enabled": False} for name in LESS_THAN_SERIOUS}}
COLOURS = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}


def watch(page: Page, url: str) -> list[str]:
    """Collects from now on what goes wrong in the page: errors and warnings of its console, exceptions, and requests
    that leave the server at `url`. The list grows as the page lives."""
    problems: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        # A page that nobody touched is left without being asked: said of the test, which loads another.
        if "attempt to show a 'beforeunload'" in message.text:
            return
        if message.type in ("error", "warning"):
            problems.append(message.text)

    def asked(request: Any) -> None:
        if not request.url.startswith((url, url.replace("http", "ws"), "data:", "blob:")):
            problems.append(f"left the server: {request.url}")

    page.on("console", heard)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", asked)
    return problems


def violations(page: Page, *, without: tuple[str, ...] = (), colours_alone: bool = False) -> list[str]:
    """The serious and critical violations that axe-core finds in the page as it is now, one line for each element.

    `without`: CSS selectors of what is left out, with everything in it. `colours_alone`: the one rule whose answer
    another theme changes.
    """
    context = {"exclude": [[selector] for selector in without]} if without else None
    results = Axe().run(page, context=context, options=COLOURS if colours_alone else ALL_RULES)
    return [
        f"{violation['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for violation in results.response["violations"]
        if violation["impact"] in SERIOUS
        for node in violation["nodes"]
    ]


def assert_accessible(page: Page, *, without: tuple[str, ...] = ()) -> None:
    """No serious or critical violation, in the colours, size and language that the page has now."""
    found = violations(page, without=without)
    assert not found, f"{page.url}:\n" + "\n".join(found)


def assert_fits(page: Page) -> None:
    """Nothing makes the page scroll sideways."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{page.url} is {wide} px too wide"
