"""Rows of a turn belong to the owner of its conversation, whoever writes them."""

import pytest
from django.db import IntegrityError, connection, transaction

from agent.models import ImportedConversation, InboxItem, OverflowEvent, TaskFrame, ToolCall, TurnEvent
from agent.rules import RULES, refine
from tests.threads.records import call_tool, thread_of

pytestmark = pytest.mark.django_db


def rows(thread, owner):
    frame = TaskFrame.objects.create(thread=thread, owner=owner)
    return [
        frame,
        ToolCall.objects.create(thread=thread, owner=owner, message=call_tool(thread), call_id="toolu_1"),
        OverflowEvent.objects.create(thread=thread, owner=owner, frame=frame),
        InboxItem.objects.create(thread=thread, owner=owner, text="words"),
        TurnEvent.objects.create(thread=thread, owner=owner, number=1, kind="settled", body={}),
        ImportedConversation.objects.create(thread=thread, owner=owner, source="a file's id"),
    ]


def test_every_row_of_a_turn_belongs_to_the_owner_of_its_thread(alice, bob):
    for row in rows(thread_of(alice), alice):
        table = type(row)._meta.db_table
        with pytest.raises(IntegrityError) as caught, transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"UPDATE {table} SET owner_id = %s WHERE id = %s", [bob.pk, row.pk])
            connection.check_constraints()
        violation = refine(caught.value)
        assert violation is not None
        assert violation.name == f"{type(row)._meta.model_name}_owner_is_the_threads"
        assert str(violation) == str(RULES[violation.name])


def test_deleting_a_thread_in_plain_sql_takes_the_rows_of_its_turns_along(alice):
    thread = thread_of(alice)
    made = rows(thread, alice)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM threads_thread WHERE id = %s", [thread.pk])
        connection.check_constraints()
    assert not any(type(row).objects.filter(pk=row.pk).exists() for row in made)


def test_a_rule_of_the_records_is_recognised_too(alice):
    message = call_tool(thread_of(alice))
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        type(message).objects.filter(pk=message.pk).update(wire="[]")
    violation = refine(caught.value)
    assert violation is not None
    assert violation.name == "message_wire_written_once"
