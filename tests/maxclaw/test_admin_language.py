"""The console in the reader's language: pages, rows, columns and numbers."""

import json
import re
from pathlib import Path

import pytest
from axes.models import AccessAttempt
from django.contrib import admin
from django.contrib.staticfiles import finders
from django.urls import reverse
from django.utils import translation
from django_q.models import OrmQ, Schedule

from agent.frames import RENEWAL_ASKED
from agent.models import InboxItem, TaskFrame, TurnEvent
from maxclaw import column_names
from maxclaw.admin_figures import Figure
from tests.maxclaw.console import name_of, pages
from threads.models import Thread

pytestmark = pytest.mark.django_db


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
