"""Every page that an address leads to: no serious violation of accessibility, nothing too wide for its screen, no error
and no request elsewhere.

The walk starts from the URL resolver: a page is covered by being there. A parameter that the walk cannot fill fails it,
so that whoever adds one says what it stands for. What pages look like once something was done on them is tested beside
what is done.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from playwright.sync_api import Page

from tests.browser import PHONE, chromium_browser, open_tab  # noqa: F401  # fixtures
from tests.browser_checks import assert_fits, violations
from tests.chat.conftest import emulator, emulator_process, server  # noqa: F401  # fixtures
from tests.maxclaw.console_records import fill
from tests.memory.facts import fact_row
from tests.threads.records import exchange, thread_of

DESKTOP = {"viewport": {"width": 1360, "height": 860}}
# The admin's pages of one table and its rows.
OF_A_TABLE = re.compile(r"/admin/\w+/\w+/(?:(add)/|\d+/(change|delete|history)/|[0-9a-f]{32,}/(\w+)/)?")
# So many of each kind are seen in both themes; the others have no colour that these have not.
IN_BOTH_THEMES = 3
SIDEBAR = "#nav-sidebar"
LOOKS: list[tuple[dict[str, Any], str, str]] = [(DESKTOP, "light", "en"), (PHONE, "dark", "zh-hans")]


@pytest.fixture
def values(alice, charlie) -> dict[str, Any]:
    """What the parameters of charlie's addresses stand for. He is on the staff, and the console has a row of every
    kind."""
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    fill(alice, charlie)
    thread = thread_of(charlie, title="Boats")
    said, _answer = exchange(thread)
    fact = fact_row(charlie, said)
    # Of addresses that are no pages.
    others = {"message": said.pk, "item": 1, "job": 1, "ordinal": 1, "content_type_id": 1, "object_id": 1, "url": "x"}
    named = {"channel": thread.channel, "fact": fact.pk, "user_id": charlie.pk, "app_label": "threads"}
    return {**others, **named}


def named_addresses(
    resolver: URLResolver, space: str = "", above: tuple[str, ...] = ()
) -> Iterator[tuple[str, list[str]]]:
    """The name of each address that has one, and its parameters."""
    for entry in resolver.url_patterns:
        own = (*above, *(entry.pattern.converters or entry.pattern.regex.groupindex))
        if isinstance(entry, URLResolver):
            yield from named_addresses(entry, f"{space}{entry.namespace}:" if entry.namespace else space, own)
        elif entry.name:
            yield space + entry.name, list(own)


def rows_of_the_console() -> dict[str, Any]:
    """The row that an address of the console is about, by the name of the address."""
    rows = {}
    for options in admin.site._registry.values():
        row = options.get_queryset(None).first()
        rows |= {f"admin:{pattern.name}": row.pk for pattern in options.get_urls() if pattern.name}
    return rows


def addresses(values: dict[str, Any]) -> list[str]:
    """Every address that has a name, once, sorted."""
    rows = rows_of_the_console()
    found = set()
    for name, parameters in named_addresses(get_resolver()):
        given = {**values, **({"object_id": rows[name], "id": rows[name]} if name in rows else {})}
        missing = [parameter for parameter in parameters if parameter not in given]
        assert not missing, f"{name}: tell the walk what {missing} stand for"
        found.add(reverse(name, kwargs={parameter: given[parameter] for parameter in parameters}))
    return sorted(found)


def is_page(client: Client, address: str) -> bool:
    answer = client.get(address, headers={"accept": "text/html,*/*;q=0.8"})
    return answer.status_code == 200 and answer.content.lstrip().lower().startswith(b"<!doctype html")


@pytest.fixture(params=LOOKS, ids=["desktop", "phone"])
def look(request) -> Any:
    return request.param


@pytest.fixture
def pages(client, charlie, values, look) -> list[str]:
    """Every page, in his language; of those that the admin has for every table, each second one: the others are seen in
    the other look. Asked for before there is a browser, in whose loop no view can be asked."""
    charlie.language = look[2]
    charlie.save()
    client.force_login(charlie, backend="django.contrib.auth.backends.ModelBackend")
    found = [address for address in addresses(values) if is_page(client, address)]
    of_tables = [address for address in found if OF_A_TABLE.fullmatch(address)]
    assert len(found) > len(of_tables) > 40
    histories = [address for address in of_tables if address.endswith("/history/")]  # which differ in nothing
    left_out = [*of_tables[LOOKS.index(look) :: 2], *histories[1:]]
    return [address for address in found if address not in left_out]


def change_theme(page: Page, scheme: str) -> None:
    """The colours of the other theme, in the page that is open. The console keeps its own in a class."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate("name => document.documentElement.classList.toggle('dark', name === 'dark')", scheme)
    page.evaluate("Promise.allSettled(document.getAnimations().map(one => one.finished))")


@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.django_db(transaction=True)
def test_every_page_is_accessible_and_fits(pages, server, charlie, look, open_tab):  # noqa: F811
    size, scheme, _language = look
    page = open_tab(server, charlie, color_scheme=scheme, **size).page
    found = []
    kinds: Counter[str] = Counter()
    for address in pages:
        page.goto(server.url + address)
        assert_fits(page)
        # Beside each table the sidebar is the same; it is looked at beside the other pages, which both looks have.
        of_table = OF_A_TABLE.fullmatch(address)
        seen = violations(page, without=(SIDEBAR,) if of_table else ())
        if of_table and (kind := next(filter(None, of_table.groups()), "list")) and kinds[kind] < IN_BOTH_THEMES:
            kinds[kind] += 1
            change_theme(page, "dark" if scheme == "light" else "light")
            seen += violations(page, without=(SIDEBAR,), colours_alone=True)
            page.emulate_media(color_scheme=scheme)
        found += [f"{address}: {violation}" for violation in seen]
    assert not found, "\n".join(found)
