"""What changes something in the console: by POST alone, and no rule is broken."""

import pytest
from django.contrib import admin
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import NoReverseMatch, reverse

from accounts.models import User
from agent.models import TaskFrame
from tests.maxclaw.console import name_of, request_of_staff, rows
from threads.models import Thread

pytestmark = pytest.mark.django_db


def action_urls():
    """Addresses of every action, whichever way it is offered, and of every page that a POST changes something by."""
    for model, options in admin.site._registry.items():
        row = options.get_queryset(None).first()
        for action in (
            *options._get_base_actions_list(),
            *options._get_base_actions_detail(),
            *options._get_base_actions_row(),
        ):
            for arguments in ([], [row.pk] if row else []):
                try:
                    yield reverse(f"admin:{action.action_name}", args=arguments)
                except NoReverseMatch:
                    continue
        for action in options.get_actions(request_of_staff()):
            yield (
                reverse(f"admin:{name_of(model)}_changelist")
                + f"?action={action}&_selected_action={row and row.pk}&post=yes"
            )
        for page in ("delete", "read", "password_change", "retire", "restore", "correct"):
            if row is not None:
                try:
                    yield reverse(f"admin:{name_of(model)}_{page}", args=[row.pk]) + "?post=yes&username=alice&after=1"
                except NoReverseMatch:
                    continue
    yield reverse("admin:memory_fact_merge") + "?reason=because&text=words"
    yield reverse("admin:shadow_shadowfactproposal_review") + "?begin=all&verdict=correct&place=0&sitting=1"
    yield reverse("admin:shadow_shadowrun_comparison") + "?format=html"
    yield reverse("admin:shadow_shadowrun_pair") + "?steward=f:1&shadow=p:1"
    for user in User.objects.all():
        yield reverse("admin:accounts_user_delete", args=[user.pk]) + f"?post=yes&username={user.username}"
        yield reverse("admin:auth_user_password_change", args=[user.pk]) + "?password1=x&password2=x"


def own_page_urls():
    """Every address that an admin of the registry adds to Django's own, with its first row where it needs one."""
    for model, options in admin.site._registry.items():
        row = options.get_queryset(None).first()
        standing = {pattern.name for pattern in admin.ModelAdmin(model, admin.site).get_urls()}
        for pattern in options.get_urls():
            if pattern.name and pattern.name not in standing:
                arguments = [row.pk if row else 1] if pattern.pattern.regex.groups else []
                yield reverse(f"admin:{pattern.name}", args=arguments) + "?post=yes&reason=because&text=words&after=1"


def test_a_get_of_an_action_changes_no_row(console, thread):
    before = rows()
    urls = [*action_urls(), *own_page_urls()]
    assert any("deactivate" in url for url in urls)
    for page in ("/read/", "/retire/", "/restore/", "/correct/", "/merge/"):
        assert any(url.split("?")[0].endswith(page) for url in own_page_urls()), page
    for url in urls:
        console.get(url)
        assert rows() == before, url


def test_a_post_without_its_token_changes_no_row(staff, thread):
    guarded = Client(enforce_csrf_checks=True)
    guarded.force_login(staff)
    before = rows()
    for url in action_urls():
        assert guarded.post(url, {"post": "yes", "username": "alice"}).status_code in (403, 405), url
    assert rows() == before


def test_a_write_that_a_rule_refuses_is_told_in_its_sentence(console, thread, monkeypatch):
    """Two running turns of one conversation, written by a page that does not look before."""

    def break_a_rule(self, request, obj):
        with transaction.atomic():
            for _index in range(2):
                TaskFrame.objects.create(thread=obj, owner=obj.owner, state="running")

    monkeypatch.setattr("threads.admin.ThreadAdmin.delete_model", break_a_rule)
    answer = console.post(reverse("admin:threads_thread_delete", args=[thread.pk]), {"post": "yes"}, follow=True)
    assert answer.status_code == 200
    assert "A conversation runs one turn at a time." in answer.content.decode()
    assert Thread.objects.filter(pk=thread.pk).exists()


def test_another_integrity_error_stays_an_error(console, thread, monkeypatch):
    def fail(self, request, obj):
        raise IntegrityError("of no rule")

    monkeypatch.setattr("threads.admin.ThreadAdmin.delete_model", fail)
    with pytest.raises(IntegrityError, match="of no rule"):
        console.post(reverse("admin:threads_thread_delete", args=[thread.pk]), {"post": "yes"})
