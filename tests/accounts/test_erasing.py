"""Erasing leaves nothing of a person in any table; exporting leaves nothing of theirs out."""

import io
import json

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError, call_command
from django.db import connection, models, transaction
from django.test import Client

from accounts import erasing
from accounts.models import User
from agent.models import ImportedConversation, ImportJob, InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from llm.models import ModelCall
from maxclaw import clock
from memory.models import Digest, EmbeddedThread, Episode, FactLog, FactUse, MessageChunk
from shadow.models import ProposalReview, ShadowBaseline, ShadowCursor, ShadowProposalEvidence
from tests.memory.facts import fact_row
from tests.shadow.records import proposal_row, run_row
from tests.threads.conversation import MODELS, Conversation
from tests.threads.records import call_tool, exchange, give_result, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads.lifecycle import LifecycleRefused, create_thread
from threads.models import Generation, Message, Thread
from threads.transcript import ThreadGone, append, live_generation, lock_thread

CANARY = "canary-7f3a"
PREFIX = f"{CANARY} in "


def places_with(word):
    """Every table and column of the database in which the word stands, whatever the column's type, and whether or not a
    model knows the table."""
    found = []
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT table_name, array_agg(column_name::text)
            FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
            WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'
            GROUP BY table_name
            """
        )
        for table, columns in cursor.fetchall():
            holds = ", ".join(f"""bool_or("{column}"::text ILIKE %s)""" for column in columns)
            cursor.execute(f'SELECT {holds} FROM "{table}"', [f"%{word}%"] * len(columns))
            found += [f"{table}.{column}" for column, yes in zip(columns, cursor.fetchone(), strict=True) if yes]
    return sorted(found)


# Columns that hold names of ours, digests and ids, but no word of a person's.
WORDLESS = {
    "memory_embeddedthread.model",
    "memory_fact.embedding_model",
    "memory_fact.fingerprint",
    "memory_messagechunk.model",
    "shadow_shadowfactproposal.fingerprint",
    "shadow_shadowrun.model",
    "shadow_shadowrun.prices",
    "accounts_user.password",
    "accounts_user.time_zone",
    "agent_overflowevent.pruned",
    "agent_overflowevent.source",
    "agent_toolcall.tool",
    "agent_turnevent.kind",
    "llm_modelcall.anchors",
    "llm_modelcall.body_sha256",
    "llm_modelcall.model",
    "llm_modelcall.prices",
    "llm_modelcall.stop_reason",
    "llm_requestheader.sha256",
    "llm_requestheader.text",
    "threads_message.model",
    "threads_thread.category",
    "threads_thread.channel",
    "threads_thread.model",
}


# Tables whose rows belong to a person and to no thread.
BESIDE_NO_THREAD = {"agent_importjob"}


def assert_every_column_is_filled(*app_labels, apart_from=frozenset()):
    """The canary stands in every column that can hold words, or these tests would prove nothing."""
    columns = {
        f"{model._meta.db_table}.{field.column}"
        for label in app_labels
        for model in apps.get_app_config(label).get_models()
        if model._meta.db_table not in apart_from
        for field in model._meta.local_concrete_fields
        if isinstance(field, models.CharField | models.TextField | models.JSONField) and not field.choices
    }
    assert columns - set(places_with(CANARY)) == WORDLESS & columns


def fill(thread, owner, staff):
    """Put the canary into everything that is kept beside a thread."""
    first, answer = exchange(thread, PREFIX + "question", PREFIX + "answer")
    call = call_tool(thread, arguments={"query": PREFIX + "arguments"})
    result = give_result(thread, text=PREFIX + "result")
    Message.objects.filter(pk=result.pk).update(tool_call_id=PREFIX + "call")
    say(thread, Message.Role.USER, PREFIX + "quoting", meta={"quote": {"text": PREFIX + "quote"}})
    Thread.objects.filter(pk=thread.pk).update(title=PREFIX + "title", lease_holder=PREFIX + "holder")
    Generation.objects.filter(thread=thread).update(
        opening=PREFIX + "opening",
        summary=PREFIX + "summary",
        summary_before=PREFIX + "summary before",
        standing=[{"text": PREFIX + "instruction"}],
    )
    frame = TaskFrame.objects.create(thread=thread, owner=owner, source=PREFIX + "source", notice=PREFIX + "notice")
    ToolCall.objects.create(
        thread=thread,
        owner=owner,
        frame=frame,
        message=call,
        result=result,
        call_id=PREFIX + "call",
        tool="look",
        arguments={"query": PREFIX + "arguments"},
    )
    OverflowEvent.objects.create(
        thread=thread, owner=owner, frame=frame, source="estimate", diagnosis=PREFIX + "diagnosis"
    )
    InboxItem.objects.create(
        thread=thread,
        owner=owner,
        text=PREFIX + "waiting",
        source=PREFIX + "source",
        client_key=PREFIX + "key",
        quote={"text": PREFIX + "quote"},
        message=first,
    )
    TurnEvent.objects.create(thread=thread, owner=owner, number=1000, kind="delta", body={"text": PREFIX + "delta"})
    ImportedConversation.objects.create(thread=thread, owner=owner, source=f"{PREFIX}file {thread.pk}", branch=PREFIX)
    conversation = Conversation(owner, thread)
    Generation.objects.filter(thread=thread).update(ended=clock.now(), end_reason="idle")
    Generation.objects.create(thread=thread, owner=owner, ordinal=2, summary=PREFIX + "summary")
    conversation.say(PREFIX + "said", [{"type": "text", "text": PREFIX + "answered"}], MODELS[0])
    model_call = ModelCall.objects.latest("pk")
    ModelCall.objects.filter(pk=model_call.pk).update(error=PREFIX + "error", request_id=PREFIX + "id")
    LogEntry.objects.create(
        user=staff,
        content_type=ContentType.objects.get_for_model(Thread),
        object_id=str(thread.pk),
        object_repr=PREFIX + "title",
        action_flag=2,
        change_message=PREFIX + "change",
    )
    remember(thread, first)
    propose(thread, first)
    model_call.refresh_from_db()
    return first, answer, model_call


def propose(thread, message):
    """Put the canary into what a shadow proposed and what staff said of it. An isolated thread has but its run."""
    ShadowCursor.objects.create(thread=thread, owner=thread.owner, initialization="enabled")
    ShadowBaseline.objects.create(generation=message.generation, thread=thread, owner=thread.owner, baseline=0)
    run = run_row(thread, message.generation, "failed", error=PREFIX + "error")
    if thread.scope == Thread.Scope.ISOLATED:
        return
    words = {"applies_to": PREFIX + "thing", "category": PREFIX + "category", "raw": {"text": PREFIX + "raw"}}
    proposal = proposal_row(message, PREFIX + "proposal", run, validation_error=PREFIX + "refusal", **words)
    ShadowProposalEvidence.objects.create(proposal=proposal, owner=thread.owner, kind="max-stated", message=message)
    ProposalReview.objects.create(proposal=proposal, owner=thread.owner, verdict="wrong", note=PREFIX + "note")


def remember(thread, message):
    """Put the canary into a fact that the message proves, and into what is kept beside it."""
    fact = fact_row(
        thread.owner,
        message,
        PREFIX + "fact",
        applies_to=PREFIX + "thing",
        project=PREFIX + "project",
        category=PREFIX + "category",
        scope=thread.scope,
        island_id=thread.island_id,
        why=PREFIX + "why",
        graduated_rule=PREFIX + "rule",
        graduated_commit=PREFIX + "commit",
        embedding=[1.0, 0.0],
        embedding_model="model",
    )
    FactUse.objects.create(fact=fact, owner=thread.owner, how="briefed", generation=message.generation)
    FactLog.objects.create(
        owner=thread.owner, writer="person", action="correct", reason=PREFIX + "reason", after=[fact.pk]
    )
    episode = Episode.objects.create(
        owner=thread.owner, thread=thread, generation=message.generation, through_seq=message.pk
    )
    Digest.objects.create(owner=thread.owner, message=message, episode=episode)
    MessageChunk.objects.create(
        message=message, thread=thread, owner=thread.owner, offset=0, length=3, model="model", embedding=[1.0, 0.0]
    )
    EmbeddedThread.objects.create(thread=thread, owner=thread.owner, model="model")


@pytest.fixture
def staff(charlie):
    charlie.is_staff = charlie.is_superuser = True
    charlie.save()
    return charlie


@pytest.mark.django_db
def test_erasing_a_thread_leaves_nothing_of_it(alice, staff):
    thread = thread_of(alice)
    task = create_thread(alice, kind="task", parent=thread)
    task_of_task = create_thread(alice, kind="task", parent=task)
    for filled in (thread, task, task_of_task):
        fill(filled, alice, staff)
    kept = thread_of(alice, title="kept")
    exchange(kept, "kept words")
    assert_every_column_is_filled("threads", "agent", "llm", "memory", "shadow", apart_from=BESIDE_NO_THREAD)
    erasing.erase_thread(thread)
    connection.check_constraints()
    assert places_with(CANARY) == []
    assert set(Thread.objects.filter(owner=alice, kind__in=["web", "task"])) == {kept}
    assert Message.objects.filter(thread=kept).count() == 2


@pytest.mark.django_db
def test_erasing_a_user_leaves_nothing_of_theirs(alice, bob, staff, client):
    alice.first_name = alice.last_name = CANARY
    alice.email = f"{CANARY}@example.org"
    alice.save()
    fill(thread_of(alice), alice, staff)
    fill(Thread.objects.get(owner=alice, kind="main"), alice, staff)
    isolated = thread_of(alice, scope="isolated")
    fill(isolated, alice, staff)
    thread_of(alice, copied_from=say(isolated, Message.Role.USER))
    ImportJob.objects.create(
        owner=alice, file_name=CANARY, stored_as=CANARY, problem=CANARY, report={"damaged": [CANARY]}
    )
    mine = Client()
    mine.force_login(alice)
    client.force_login(bob)
    exchange(thread_of(bob), "bob's words")
    User.objects.filter(pk=alice.pk).update(username=CANARY)
    alice.refresh_from_db()
    LogEntry.objects.create(
        user=staff,
        content_type=ContentType.objects.get_for_model(User),
        object_id=str(alice.pk),
        object_repr=CANARY,
        action_flag=2,
    )
    assert_every_column_is_filled("accounts", "threads", "agent", "llm", "memory", "shadow")
    owner_id = alice.pk
    erasing.erase_user(alice)
    connection.check_constraints()
    assert places_with(CANARY) == []
    for model in apps.get_models():
        for field in model._meta.local_concrete_fields:
            if isinstance(field, models.ForeignKey) and field.related_model is User:
                assert not model._default_manager.filter(**{field.attname: owner_id}).exists(), model
    assert "_auth_user_id" not in mine.session
    assert client.session["_auth_user_id"] == str(bob.pk)
    assert Message.objects.filter(owner=bob).count() == 2


@pytest.mark.django_db
def test_model_calls_keep_their_numbers_and_lose_what_they_speak_of(alice, staff):
    thread = thread_of(alice)
    _first, _answer, call = fill(thread, alice, staff)
    numbers = (call.input_tokens, call.output_tokens, call.prices, call.cost, call.outcome, call.started)
    assert numbers[:2] == (1200, 34)
    erasing.erase_thread(thread)
    call.refresh_from_db()
    assert call.owner == alice
    assert (call.input_tokens, call.output_tokens, call.prices, call.cost, call.outcome, call.started) == numbers
    assert (call.thread_id, call.generation_id, call.last_message_id, call.answer_message_id) == (None,) * 4
    assert (call.anchors, call.thinking_from, call.body_sha256, call.error, call.request_id) == ([], 0, "", "", "")
    erasing.erase_user(alice)
    call.refresh_from_db()
    assert (call.owner, call.input_tokens) == (None, 1200)


@pytest.mark.django_db
def test_branches_and_copies_stay_and_forget_where_they_came_from(alice):
    from threads.copying import fork

    thread = thread_of(alice)
    _first, answer = exchange(thread, "shared words")
    branch = fork(alice, thread, answer, acting_user=alice)
    erasing.erase_thread(thread)
    connection.check_constraints()
    branch.refresh_from_db()
    assert branch.copied_from is None
    assert list(Message.objects.filter(thread=branch).values_list("text", "copied_from")) == [
        ("shared words", None),
        ("answer", None),
    ]


@pytest.mark.django_db
def test_an_island_outlives_its_root_together(alice):
    root = thread_of(alice, scope="isolated")
    message = say(root, Message.Role.USER)
    first, second = (thread_of(alice, copied_from=message) for _index in range(2))
    task = create_thread(alice, kind="task", parent=root)
    erasing.erase_thread(root)
    connection.check_constraints()
    assert not Thread.objects.filter(pk__in=(root.pk, task.pk)).exists()
    assert set(Thread.objects.filter(pk__in=(first.pk, second.pk)).values_list("scope", "island_id")) == {
        ("isolated", first.pk)
    }


@pytest.mark.django_db
def test_the_main_thread_stays_and_nothing_of_it_is_gone(alice, staff):
    main = Thread.objects.get(owner=alice, kind="main")
    fill(main, alice, staff)
    before = places_with(CANARY)
    with pytest.raises(LifecycleRefused):
        erasing.erase_thread(main)
    assert places_with(CANARY) == before


@pytest.mark.django_db
def test_a_failing_app_leaves_everything_as_it_was(alice, staff, monkeypatch):
    import llm.erasure

    thread = thread_of(alice)
    fill(thread, alice, staff)
    before = places_with(CANARY)

    def fail(_thread):
        raise RuntimeError

    monkeypatch.setattr(llm.erasure, "erase_thread", fail)
    with pytest.raises(RuntimeError):
        erasing.erase_thread(thread)
    assert places_with(CANARY) == before


@pytest.mark.django_db(transaction=True)
def test_erasing_waits_for_a_turn_at_work_and_takes_all_that_it_wrote(alice):
    thread = thread_of(alice)
    frame = TaskFrame.objects.create(thread=thread, owner=alice)

    def work():
        locked = lock_thread(thread.pk)
        append(locked, live_generation(locked), Message.Role.USER, text="in the last moment")
        create_thread(alice, kind="task", parent=thread)
        TaskFrame.objects.filter(pk=frame.pk).update(steps=1)

    turn = Elsewhere(work)
    assert turn.began.wait(20)
    erasure = Elsewhere(lambda: erasing.erase_thread(thread))
    erasure.may_commit.set()
    wait_until_blocked()
    turn.finish()
    erasure.finish()
    assert (turn.error, erasure.error) == (None, None)
    assert set(Thread.objects.values_list("kind", flat=True)) == {"main"}
    assert not Message.objects.exists()
    with pytest.raises(ThreadGone), transaction.atomic():
        lock_thread(thread.pk)


def test_upper_apps_go_first():
    names = [module.__name__ for module in erasing.registered()]
    ours = [name for name in names if name.split(".")[0] in ("accounts", "llm", "threads", "agent")]
    assert ours == ["agent.erasure", "threads.erasure", "llm.erasure", "accounts.erasure"]


@pytest.mark.django_db
def test_an_export_holds_every_word(alice, bob, staff):
    fill(thread_of(alice), alice, staff)
    fill(thread_of(bob), bob, staff)
    records = [json.loads(json.dumps(record)) for record in erasing.export_user(alice)]
    assert records[0]["record"] == "account"
    assert records[0]["username"] == "alice"
    kinds = {record["record"] for record in records}
    assert kinds >= {"thread", "generation", "message", "turn", "tool_call", "inbox_item", "model_call"}
    text = json.dumps(records)
    for place in ("title", "opening", "summary", "question", "answer", "arguments", "result", "quote", "said"):
        assert PREFIX + place in text, place
    for place in ("notice", "waiting", "error"):
        assert PREFIX + place in text, place
    channels = {record["channel"] for record in records if "channel" in record}
    assert channels == set(Thread.objects.filter(owner=alice).values_list("channel", flat=True))
    assert alice.password not in text


@pytest.mark.django_db
def test_the_commands_export_and_erase(alice, tmp_path):
    exchange(thread_of(alice), "words to keep")
    file = tmp_path / "alice.jsonl"
    call_command("export_user", "alice", to=file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert "words to keep" in {line.get("text") for line in lines}
    assert [path.name for path in tmp_path.iterdir()] == ["alice.jsonl"]
    out = io.StringIO()
    call_command("export_user", "alice", stdout=out)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == lines
    call_command("erase_user", "alice", yes=True, stdout=io.StringIO())
    assert not User.objects.filter(username="alice").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["export_user", "erase_user"])
def test_the_commands_refuse_an_unknown_name(command):
    with pytest.raises(CommandError, match="nobody-here"):
        call_command(command, "nobody-here")


@pytest.mark.django_db
def test_erasing_asks_and_takes_no_other_answer(alice, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda _prompt: "yes")
    with pytest.raises(CommandError, match="Nothing was erased"):
        call_command("erase_user", "alice")
    assert User.objects.filter(username="alice").exists()


@pytest.mark.django_db
def test_an_export_that_cannot_be_written_leaves_no_half_file(alice, tmp_path):
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("export_user", "alice", to=tmp_path / "no such folder" / "alice.jsonl")
    assert list(tmp_path.iterdir()) == []
