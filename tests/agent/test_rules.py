"""What the database refuses of a turn's rows even when the code is wrong: each rule by raw SQL."""

import pytest
from django.db import IntegrityError, connection, transaction

from agent.models import ImportedConversation, ImportJob, InboxItem, TaskFrame, ToolCall, TurnEvent
from agent.rules import RULES
from tests.memory.facts import tool_result
from threads.lifecycle import create_thread
from threads.models import Message
from threads.transcript import append, live_generation, lock_thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def thread(alice):
    return create_thread(alice)


@pytest.fixture
def frame(thread):
    return TaskFrame.objects.create(thread=thread, owner=thread.owner)


@pytest.fixture
def message(thread):
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        return append(locked, live_generation(locked), Message.Role.ASSISTANT, text="words")


def refused(rule: str, statement: str, *parameters) -> None:
    """Run raw SQL that the rule must refuse, by name."""
    assert rule in RULES
    with pytest.raises(IntegrityError) as error, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert error.value.__cause__.diag.constraint_name == rule


def copy(table: str, pk: int, **changes) -> tuple[str, list]:
    """An INSERT of a copy of a row, some columns changed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND column_name <> 'id'", [table]
        )
        columns = [row[0] for row in cursor.fetchall()]
    values = ", ".join("%s" if column in changes else f'"{column}"' for column in columns)
    names = ", ".join(f'"{column}"' for column in columns)
    parameters = [changes[column] for column in columns if column in changes]
    return f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} WHERE id = %s", [*parameters, pk]


@pytest.mark.parametrize(
    ("rule", "statement"),
    [
        ("frame_end_has_time", "UPDATE agent_taskframe SET state = 'done'"),
        ("frame_end_has_time", "UPDATE agent_taskframe SET ended = now()"),
        ("frame_level_0_to_4", "UPDATE agent_taskframe SET level = 5"),
        ("frame_level_0_to_4", "UPDATE agent_taskframe SET level = -1"),
    ],
)
def test_frames(frame, rule, statement):
    refused(rule, statement)


def test_a_thread_runs_one_frame(frame):
    statement, parameters = copy("agent_taskframe", frame.pk)
    refused("frame_one_running_per_thread", statement, *parameters)


def test_a_tool_call_is_recorded_once(thread, message):
    call = ToolCall.objects.create(message=message, thread=thread, owner=thread.owner, call_id="toolu_1", tool="x")
    statement, parameters = copy("agent_toolcall", call.pk)
    refused("toolcall_once_per_message", statement, *parameters)


def test_a_tool_call_stays_as_it_was_made(thread, message, alice, bob):
    call = ToolCall.objects.create(message=message, thread=thread, owner=thread.owner, call_id="toolu_1", tool="x")
    other = create_thread(alice)
    changes = {"id": -1, "message_id": 1, "thread_id": other.pk, "owner_id": bob.pk, "call_id": "toolu_2", "tool": "y"}
    for column, value in changes.items():
        statement = f"UPDATE agent_toolcall SET {column} = %s WHERE id = %s"
        refused("toolcall_stays_as_it_was_made", statement, value, call.pk)


def test_a_tool_call_ends_once(thread, message):
    done = ToolCall.objects.get(result=tool_result(thread))
    ends = ("done", "failed", "refused", "interrupted")
    for number, end in enumerate(ends):
        call = ToolCall.objects.create(
            message=message, thread=thread, owner=thread.owner, call_id=f"toolu_{number}", tool="x", status=end
        )
        for status in {*ends, "pending", "running", "waiting"} - {end}:
            refused("toolcall_ends_once", "UPDATE agent_toolcall SET status = %s WHERE id = %s", status, call.pk)
    for result in (None, message.pk):
        refused("toolcall_ends_once", "UPDATE agent_toolcall SET result_id = %s WHERE id = %s", result, done.pk)


def test_a_tool_call_that_was_answered_goes_with_its_answer(thread, message):
    result = tool_result(thread)
    call = ToolCall.objects.get(result=result)
    ToolCall.objects.create(message=message, thread=thread, owner=thread.owner, call_id="toolu_1", tool="x").delete()
    refused("toolcall_goes_with_its_result", "DELETE FROM agent_toolcall WHERE id = %s", call.pk)
    connection.check_constraints()
    refused("toolcalls_go_with_their_results", "TRUNCATE agent_toolcall")
    call.delete()
    result.delete()
    connection.check_constraints()


@pytest.mark.parametrize("level", [-1, 5])
def test_the_level_of_an_item(thread, level):
    InboxItem.objects.create(thread=thread, owner=thread.owner, text="words", client_key="k")
    refused("inboxitem_level_0_to_4", "UPDATE agent_inboxitem SET level = %s", level)


def test_a_client_key_is_used_once(thread):
    item = InboxItem.objects.create(thread=thread, owner=thread.owner, text="words", client_key="k")
    statement, parameters = copy("agent_inboxitem", item.pk)
    refused("inboxitem_client_key_once", statement, *parameters)


def test_an_event_number_is_used_once(thread):
    event = TurnEvent.objects.create(thread=thread, owner=thread.owner, number=1, kind="state", body={})
    statement, parameters = copy("agent_turnevent", event.pk)
    refused("turnevent_number_once", statement, *parameters)


def test_a_conversation_of_a_file_is_imported_once(thread):
    row = ImportedConversation.objects.create(thread=thread, owner=thread.owner, source="a")
    other = create_thread(thread.owner)
    statement, parameters = copy("agent_importedconversation", row.pk, thread_id=other.pk)
    refused("importedconversation_once_per_owner", statement, *parameters)


def test_one_import_at_a_time(alice):
    job = ImportJob.objects.create(owner=alice, file_name="a.zip", stored_as="a")
    statement, parameters = copy("agent_importjob", job.pk, stored_as="b")
    refused("importjob_one_open_per_owner", statement, *parameters)


@pytest.mark.parametrize(
    ("rule", "statement"),
    [
        ("importjob_running_has_lease", "UPDATE agent_importjob SET state = 'running', lease_until = NULL"),
        ("importjob_end_has_time", "UPDATE agent_importjob SET finished = now()"),
    ],
)
def test_an_import(alice, rule, statement):
    ImportJob.objects.create(owner=alice, file_name="a.zip", stored_as="a")
    refused(rule, statement)


@pytest.mark.parametrize(
    ("rule", "table"),
    [
        ("taskframe_owner_is_the_threads", "agent_taskframe"),
        ("overflowevent_owner_is_the_threads", "agent_overflowevent"),
        ("inboxitem_owner_is_the_threads", "agent_inboxitem"),
        ("turnevent_owner_is_the_threads", "agent_turnevent"),
        ("importedconversation_owner_is_the_threads", "agent_importedconversation"),
    ],
)
def test_every_row_beside_a_thread_belongs_to_its_owner(thread, frame, bob, rule, table):
    from agent.models import OverflowEvent

    OverflowEvent.objects.create(frame=frame, thread=thread, owner=thread.owner, source="estimate")
    InboxItem.objects.create(thread=thread, owner=thread.owner, text="words", client_key="k")
    TurnEvent.objects.create(thread=thread, owner=thread.owner, number=1, kind="state", body={})
    ImportedConversation.objects.create(thread=thread, owner=thread.owner, source="a")
    refused(rule, f"UPDATE {table} SET owner_id = %s", bob.pk)


def test_a_tool_call_belongs_to_the_owner_of_its_thread(thread, message, bob):
    call = ToolCall.objects.create(message=message, thread=thread, owner=thread.owner, call_id="toolu_1", tool="x")
    statement, parameters = copy("agent_toolcall", call.pk, owner_id=bob.pk, call_id="toolu_2")
    refused("toolcall_owner_is_the_threads", statement, *parameters)


def test_every_rule_is_driven_by_a_test():
    from pathlib import Path

    said = Path(__file__).read_text()
    assert not [rule for rule in RULES if f'"{rule}"' not in said]
