"""Importing data exports of ChatGPT and Claude."""

import io
from collections import Counter

import pytest
from django.core.management import call_command
from django.db.models import Count

from agent.models import ToolCall
from tests.agent import exports
from threads.models import Message, Thread

pytestmark = pytest.mark.django_db

# How many conversations of each format the large export has.
FORMATS = {"chatgpt": (exports.chatgpt_conversation, 2_000), "claude": (exports.claude_conversation, 400)}


@pytest.fixture
def bring(alice):
    """Runs the command on a file; returns what it said (standard output and standard error)."""

    def call(path, user="alice", **options):
        out, err = io.StringIO(), io.StringIO()
        call_command("import_conversations", str(path), user=user, stdout=out, stderr=err, **options)
        return out.getvalue(), err.getvalue().replace(str(path), "FILE")

    return call


def conversations_of(owner):
    return Thread.objects.filter(owner=owner, kind="web").order_by("id")


def said(thread):
    return list(Message.objects.filter(thread=thread).order_by("id").values_list("role", "text"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("format", FORMATS)
def test_a_large_export_is_imported_whole_and_once(bring, alice, tmp_path, format):
    make, count = FORMATS[format]
    whole = [make(number) for number in range(count)]
    damaged = [b'{"title": "cut", "mapping": {', {"title": "no messages", "uuid": "x"}, b'{"title": nonsense}']
    file = exports.write_zip(
        tmp_path / "export.zip", [*whole[:300], damaged[0]], [damaged[1], *whole[300:], damaged[2]], user_json="{}"
    )
    out, err = bring(file)
    branches = len(range(0, count, 3))
    assert out.startswith(f"Imported {out.split()[1]} messages: {count:,} new conversations, 0 that grew, 0 unchanged, ")
    assert f"{branches} branches. 0 messages already there, 3 left out." in out
    assert len(err.splitlines()) == 3
    assert "conversations-000.json, entry 301" in err and "conversations-001.json, entry 1 (“no messages”)" in err

    assert count > 300
    mains = Thread.objects.filter(owner=alice, kind="web", copied_from__isnull=True)
    assert mains.count() == count
    for thread in mains.filter(title__in=["Talk 0", "Talk 12", f"Talk {count - 1}"]):
        number = int(thread.title.split()[1])
        assert (thread.created, thread.updated) == (exports.time_of(number), exports.time_of(number, 6))
    own = Message.objects.filter(owner=alice, copied_from__isnull=True)
    questions = dict(own.filter(text__startswith="Question").values_list("text", "created"))
    assert questions == {f"Question {number}": exports.time_of(number) for number in range(count)}
    welcomes = dict(own.filter(text__startswith="Welcome").values_list("text", "created"))
    assert welcomes == {f"Welcome {number}": exports.time_of(number, 6) for number in range(count)}
    assert Counter(own.exclude(role="tool").exclude(text="").values_list("text", flat=True)).most_common(1)[0][1] == 1
    branched = Thread.objects.filter(owner=alice, copied_from__isnull=False).select_related("copied_from")
    assert branched.count() == branches
    for thread in branched.annotate(rows=Count("messages")):
        number = int(thread.title.split()[1])
        assert thread.title == f"Talk {number} · branch 1"
        assert thread.updated == exports.time_of(number, 3)
        assert thread.copied_from.text in (f"Question {number}", f"{number}")
    assert own.filter(text__startswith="First answer").count() == branches
    calls = ToolCall.objects.filter(owner=alice, message__copied_from__isnull=True).select_related("result")
    assert sorted(int(call.result.text) for call in calls) == list(range(0, count, 4))

    before = (Message.objects.count(), Thread.objects.count(), ToolCall.objects.count())
    out, _err = bring(file)
    assert f"Imported 0 messages: 0 new conversations, 0 that grew, {count:,} unchanged." in out
    assert (Message.objects.count(), Thread.objects.count(), ToolCall.objects.count()) == before
