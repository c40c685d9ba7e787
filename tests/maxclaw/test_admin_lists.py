"""The lists of the console: what they are filtered, searched and ordered by."""

import html
import re

import pytest
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from tests.maxclaw.console import name_of, request_of_staff
from tests.maxclaw.console_records import SECRET
from threads.models import PrivateReading

pytestmark = pytest.mark.django_db

# A quote's channel is an address: the words around it are never searched.
SEARCHED_IN_PART = {"GivenQuote": {"quote"}}


def columns_of(model):
    """Every column that an address could name: the model's own, and those one relation away."""
    for field in model._meta.get_fields():
        if not field.is_relation:
            yield field.name
        elif field.related_model is not None:
            yield from (f"{field.name}__{column.name}" for column in field.related_model._meta.concrete_fields)


def declared_columns(options):
    """What the console's own lists filter by."""
    for declared in options.list_filter:
        if isinstance(declared, (str, tuple)):
            yield declared if isinstance(declared, str) else declared[0]


def test_no_list_tells_what_a_column_says_by_filtering_searching_or_ordering(bob, thread):
    """Whoever sees the lists, and may not read private text, filters by declared columns alone, and none is private."""
    bob.is_staff = True
    bob.save()
    bob.user_permissions.set(Permission.objects.filter(codename__startswith="view_"))
    browser = Client()
    browser.force_login(bob)
    asked, request = 0, request_of_staff()
    for model, options in admin.site._registry.items():
        shown = {"id", *options.get_fields(request, model()), *options.list_display}
        private = {field.name for field in model._meta.concrete_fields} - shown
        declared = set(declared_columns(options))
        ordered = {ChangeList.get_ordering_field(_list_of(options), name) for name in options.list_display}
        searched = {name.lstrip("^=@").split("__")[0] for name in options.search_fields}
        assert not private & (declared | ordered), model
        assert not private & searched - SEARCHED_IN_PART.get(model.__name__, set()), model
        for name in columns_of(model):
            for lookup in ("startswith", "icontains", "regex", "gt", "lte", "isnull", "exact", "length__gt", ""):
                asked += 1
                parameter = f"{name}__{lookup}" if lookup else name
                allowed = options.lookup_allowed(parameter, SECRET, request)
                assert (
                    not allowed or {name, name.removesuffix("__id")} & declared or parameter in options.linked_lookups
                ), (
                    model,
                    parameter,
                )
        changelist = reverse(f"admin:{name_of(model)}_changelist")
        assert browser.get(changelist).status_code == 200, model
        for name in sorted(private)[:2]:
            assert browser.get(f"{changelist}?{name}__startswith=s").status_code == 400, (model, name)
    assert asked > 1_000
    for url in (
        reverse("admin:threads_message_changelist") + "?text__startswith=s",
        reverse("admin:quotes_givenquote_changelist") + "?quote__text__startswith=s",
        reverse("admin:threads_thread_changelist") + "?title__startswith=s",
        reverse("admin:accounts_user_changelist") + "?groups__user__password__startswith=s",
    ):
        assert browser.get(url).status_code == 400, url
    assert not PrivateReading.objects.filter(reader=bob).exists()


def test_declared_filters_and_links_of_other_pages_are_followed(console, thread):
    """One link of each parameter that a list offers."""
    for model, options in admin.site._registry.items():
        changelist = reverse(f"admin:{name_of(model)}_changelist")
        shown = console.get(changelist).content.decode()
        links = {link.split("=")[0]: html.unescape(link) for link in re.findall(r'href="(\?[a-z_]+=[^"]*)"', shown)}
        links |= {name: f"?{name}={thread.pk}" for name in options.linked_lookups}
        links.pop("?o", None)
        for link in links.values():
            assert console.get(changelist + link).status_code == 200, (model, link)


def _list_of(options):
    """Enough of a list to ask what its columns are ordered by."""
    found = ChangeList.__new__(ChangeList)
    found.model, found.model_admin, found.lookup_opts = options.model, options, options.opts
    return found
