"""The console as a whole: every page opens, private words show nowhere by themselves, nothing changes by a GET."""

import html
import json
import re
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import Group, Permission
from django.contrib.staticfiles import finders
from django.db import IntegrityError, connection, transaction
from django.db.models import CharField, JSONField, TextField
from django.test import Client
from django.urls import NoReverseMatch, URLResolver, get_resolver, reverse
from django.utils import translation
from django_q.models import OrmQ, Schedule

from accounts.models import User
from agent.frames import RENEWAL_ASKED
from agent.models import ImportJob, InboxItem, TaskFrame, TurnEvent
from maxclaw import column_names
from maxclaw.admin_figures import Figure
from maxclaw.admin_theme import navigation
from memory.models import Fact
from tests.accounts.test_erasing import places_with
from tests.maxclaw.console_records import SECRET, fill
from threads.models import Message, PrivateReading, Thread

pytestmark = pytest.mark.django_db

# A quote's channel is an address: the words around it are never searched.
SEARCHED_IN_PART = {"GivenQuote": {"quote"}}


@pytest.fixture
def staff(charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    return charlie


@pytest.fixture
def thread(alice, staff):
    return fill(alice, staff)


@pytest.fixture
def console(client, staff):
    client.force_login(staff)
    return client


def name_of(model):
    return f"{model._meta.app_label}_{model._meta.model_name}"


def pages():
    """Every page of the console that a GET may ask for, rows included."""
    yield reverse("admin:index")
    yield reverse("admin:agent_health")
    yield reverse("admin:llm_modelcall_costs")
    yield reverse("admin:llm_modelcall_costs") + "?days=7&by=purpose"
    yield reverse("admin:memory_fact_overview") + "?days=7"
    yield reverse("admin:shadow_shadowrun_comparison") + "?days=7"
    yield reverse("admin:shadow_shadowrun_comparison") + "?format=json"
    yield reverse("admin:shadow_shadowfactproposal_review")
    for label in {model._meta.app_label for model in admin.site._registry}:
        yield reverse("admin:app_list", args=[label])
    for model, options in admin.site._registry.items():
        yield reverse(f"admin:{name_of(model)}_changelist")
        for row in options.get_queryset(None)[:2]:
            yield reverse(f"admin:{name_of(model)}_change", args=[row.pk])
            yield reverse(f"admin:{name_of(model)}_history", args=[row.pk])


def test_every_page_opens_shows_no_private_word_changes_no_row_and_is_no_reading(console, thread):
    for model in admin.site._registry:
        assert model._default_manager.exists(), name_of(model)
    before = rows()
    for url in pages():
        answer = console.get(url)
        assert answer.status_code == 200, url
        assert SECRET not in answer.content.decode(), url
    assert rows() == before


# Names, digests and sentences that we or a catalog give, and ids of the provider's.
OURS = {
    "agent_importjob.stored_as",
    "agent_inboxitem.source",
    "agent_overflowevent.pruned",
    "agent_overflowevent.source",
    "agent_taskframe.source",
    "llm_modelcall.anchors",
    "llm_modelcall.body_sha256",
    "llm_modelcall.model",
    "llm_modelcall.prices",
    "llm_modelcall.request_id",
    "llm_modelcall.stop_reason",
    "llm_requestheader.sha256",
    "llm_requestheader.text",
    "memory_embeddedthread.model",
    "memory_fact.category",
    "memory_fact.embedding_model",
    "memory_fact.fingerprint",
    "memory_fact.graduated_commit",
    "memory_fact.graduated_rule",
    "memory_messagechunk.model",
    "shadow_shadowfactproposal.category",
    "shadow_shadowfactproposal.fingerprint",
    "shadow_shadowrun.error",
    "shadow_shadowrun.model",
    "shadow_shadowrun.prices",
    "threads_thread.category",
    "threads_thread.channel",
    "threads_thread.lease_holder",
    "threads_thread.model",
}


def test_every_column_that_holds_words_holds_the_private_one(thread):
    """Else the test above proves nothing of it."""
    columns = {
        f"{model._meta.db_table}.{field.column}"
        for model in apps.get_models()
        if model._meta.app_label in ("agent", "threads", "llm", "memory", "shadow")
        for field in model._meta.local_concrete_fields
        if isinstance(field, CharField | TextField | JSONField) and not field.choices
    }
    assert columns - set(places_with(SECRET)) == OURS


def test_every_page_opens_in_chinese(console, thread, staff):
    staff.language = "zh-hans"
    staff.save()
    for url in pages():
        assert console.get(url).status_code == 200, url


def test_rows_of_the_queue_and_of_sign_ins_speak_chinese(console, thread, staff):
    """What other packages named and explained in English alone."""
    staff.language = "zh-hans"
    staff.save()
    for table in (AccessAttempt, OrmQ, Schedule, TaskFrame):
        address = reverse(f"admin:{name_of(table)}_change", args=[table.objects.latest("pk").pk])
        page = console.get(address).content.decode()
        for english in ("Axes", "Attempted Access", "OrmQ object", "Name of the", "e.g. ", "Keyword", "turn "):
            assert english not in re.sub("<[^>]*>", "", page), (table, english)


def test_what_turns_come_from_and_what_happens_in_them_has_names(console, thread, staff):
    staff.language = "zh-hans"
    staff.save()
    TaskFrame.objects.update(source=RENEWAL_ASKED)
    InboxItem.objects.create(thread=thread, owner=thread.owner, source="task/c-above", text="Look")
    for table, names in {
        TaskFrame: {"更新：用户要求"},
        InboxItem: {"用户", "c-above 分派的任务"},
        TurnEvent: {"回答的后续文字"},
    }.items():
        seen = [console.get(reverse(f"admin:{name_of(table)}_changelist")).content.decode()]
        seen += [
            console.get(reverse(f"admin:{name_of(table)}_change", args=[row.pk])).content.decode()
            for row in table.objects.all()
        ]
        for name in names:
            assert name in re.sub("<[^>]*>", "", "".join(seen)), (table, name)
        codes = re.sub("<[^>]*>", " ", "".join(seen)).split()
        assert not {"user", "task/c-above", RENEWAL_ASKED, "delta"} & set(codes), table


def test_the_picker_of_several_rows_speaks_chinese(console, staff):
    staff.language = "zh-hans"
    staff.save()
    words = console.get(reverse("admin:jsi18n")).content.decode()
    catalogue = json.loads(words.split("const newcatalog = ")[1].split(";\n")[0])
    script = Path(finders.find("admin/js/SelectFilter2.js")).read_text()
    said = [words for _mark, words in re.findall(r"gettext\(\s*(['\"])(.*?)\1\s*[,)]", script, re.DOTALL)]
    assert len(said) > 10
    assert [words for words in said if not catalogue.get(words)] == []


def rows():
    """What every table holds, but for sessions and the notes of sign-ins that any request may write."""
    found = {}
    with connection.cursor() as cursor:
        for model in apps.get_models(include_auto_created=True):
            if model._meta.app_label in ("sessions", "axes"):
                continue
            table = model._meta.db_table
            cursor.execute(
                f"SELECT md5(coalesce(string_agg(t::text, chr(10) ORDER BY t::text), '')) FROM \"{table}\" t"
            )
            found[table] = cursor.fetchone()[0]
    return found


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
        for action in options.get_actions(_request()):
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


def _request():
    from django.test import RequestFactory

    request = RequestFactory().get("/")
    request.user = User.objects.get(is_superuser=True)
    return request


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


def test_staff_see_what_permissions_grant(bob, thread):
    bob.is_staff = True
    bob.save()
    browser = Client()
    browser.force_login(bob)
    empty = browser.get(reverse("admin:index")).content.decode()
    assert "was given nothing to see yet" in empty
    for url in (reverse("admin:agent_health"), reverse("admin:llm_modelcall_costs")):
        assert browser.get(url).status_code == 403
    for model in admin.site._registry:
        assert browser.get(reverse(f"admin:{name_of(model)}_changelist")).status_code == 403, model
    told = set()
    for model, options in admin.site._registry.items():
        for page in ("read", "history", "delete", "change", "retire"):
            for row in (options.get_queryset(None).first().pk, 10**9):
                try:
                    address = reverse(f"admin:{name_of(model)}_{page}", args=[row])
                except NoReverseMatch:
                    continue
                told |= {browser.get(address).status_code, browser.post(address).status_code}
    assert told <= {403, 405}, "nothing says which ids there are"
    bob.user_permissions.add(Permission.objects.get(codename="view_modelcall"))
    bob = User.objects.get(pk=bob.pk)
    assert browser.get(reverse("admin:llm_modelcall_changelist")).status_code == 200
    shown = browser.get(reverse("admin:index")).content.decode()
    assert "Dollars today" in shown
    assert "Queued tasks" not in shown
    assert reverse("admin:threads_thread_changelist") not in shown


def test_people_who_are_no_staff_see_nothing(client, alice, thread):
    client.force_login(alice)
    for url in pages():
        assert client.get(url).status_code == 302, url
    assert client.get(reverse("admin:login")).status_code == 403


def test_staff_change_their_password_and_leave_where_everybody_does(console):
    answer = console.get(reverse("admin:password_change"))
    assert (answer.status_code, answer["Location"]) == (302, reverse("account-password"))
    assert console.get(reverse("admin:logout")).status_code == 405
    answer = console.post(reverse("admin:logout"))
    assert (answer.status_code, answer["Location"]) == (302, reverse("login"))
    assert console.get(reverse("admin:index")).status_code == 302


def test_pages_of_the_console_are_kept_in_no_cache(console, thread):
    assert "no-store" in console.get(reverse("admin:threads_thread_changelist"))["Cache-Control"]


def test_the_sidebar_leads_to_every_list(console, thread):
    shown = console.get(reverse("admin:index")).content.decode()
    linked = {item["link"] for group in navigation() for item in group["items"]}
    for model in admin.site._registry:
        url = reverse(f"admin:{name_of(model)}_changelist")
        assert url in linked, url
        assert url in shown


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_large_numbers_are_grouped_in_every_language(language):
    with translation.override(language):
        assert Figure("tokens", 3_070_228).shown == "3,070,228"


def test_a_row_is_called_by_its_own_name_in_small_letters_too(console, thread):
    """The names of lists begin with a capital letter; a channel that did would be another one."""
    Thread.objects.filter(pk=thread.pk).update(channel="abcdefghijkm")
    shown = console.get(reverse("admin:threads_thread_change", args=[thread.pk])).content.decode()
    trail = [" ".join(part.split()) for part in re.findall(r"tracking-tight\">(.*?)</(?:a|span)>", shown, re.DOTALL)]
    assert trail == ["Conversations", "Conversations", "abcdefghijkm"]


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


def addresses(patterns, known, prefix="/"):
    """(name, address) of every page outside the console, its parameters filled with what is there."""
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            if pattern.app_name != "admin":
                yield from addresses(pattern.url_patterns, known, prefix + str(pattern.pattern))
            continue
        address = prefix + str(pattern.pattern)
        for name in re.findall(r"<\w+:(\w+)>", address):
            address = re.sub(rf"<\w+:{name}>", str(known.get(name, 1)), address)
        yield pattern.name, address


def test_the_content_policy_is_looser_in_the_admin_alone(console, alice, thread):
    inside = console.get(reverse("admin:index"))["Content-Security-Policy"]
    assert "script-src 'self' 'unsafe-eval'" in inside
    assert "'unsafe-inline'" not in re.search(r"script-src[^;]*", inside).group()
    person = Client()
    person.force_login(alice)
    rows = {"job": ImportJob, "fact": Fact, "message": Message, "item": InboxItem}
    known = {name: table.objects.latest("pk").pk for name, table in rows.items()} | {"channel": thread.channel}
    opened = set()
    for name, address in addresses(get_resolver().url_patterns, known):
        for browser in (person, Client()):
            answer = browser.get(address)
            policy = answer["Content-Security-Policy"]
            # The page that tries the interface out styles elements in place.
            policy = policy.replace("style-src 'self' 'unsafe-inline'", "") if name == "api-docs" else policy
            assert "unsafe" not in policy, address
            if answer.status_code == 200:
                opened.add(name)
    assert opened >= {
        "account",
        "login",
        "chat",
        "conversation",
        "import",
        "search",
        "memory",
        "memory-fact",
        "api-docs",
    }


def test_every_column_of_ours_is_named_in_the_readers_language():
    """A column without a name of its own is in the list of names, so that it can be translated."""
    unnamed = [
        f"{model._meta.label}.{field.name}"
        for model in admin.site._registry
        if model._meta.app_label in column_names.OUR_APPS
        for field in model._meta.local_fields
        if field._verbose_name is None
        and not field.primary_key
        and field.verbose_name not in column_names.NAMES.values()
    ]
    assert unnamed == []
    with translation.override("zh-hans"):
        assert str(Thread._meta.get_field("channel").verbose_name) == "频道"


def test_groups_are_given_permissions(console, thread):
    group = Group.objects.get(name="helpers")
    right = Permission.objects.get(codename="view_thread")
    url = reverse("admin:auth_group_change", args=[group.pk])
    console.post(url, {"name": "helpers", "permissions": [right.pk]})
    assert list(group.permissions.all()) == [right]


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
    asked, request = 0, _request()
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
