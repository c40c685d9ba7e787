"""What is appended stays, in order, and only whoever holds the thread's row writes."""

import json
import threading
import uuid
from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from maxclaw import clock
from tests.threads.records import call_tool, live, say, thread_of
from tests.threads.transactions import Elsewhere, wait_until_blocked
from threads import transcript
from threads.lifecycle import create_thread, end
from threads.models import Generation, Message, Thread
from threads.rules import refine
from threads.transcript import (
    LeaseLost,
    NewMessage,
    NoLiveGeneration,
    NotLocked,
    ThreadGone,
    append,
    append_many,
    finish_answer,
    live_generation,
    lock_thread,
    search_text_of,
    text_block,
)


@pytest.mark.django_db(transaction=True)
def test_locking_outside_a_transaction_is_refused(alice):
    with pytest.raises(TransactionManagementError):
        lock_thread(thread_of(alice).pk)


@pytest.mark.django_db
def test_a_thread_that_is_gone_cannot_be_locked():
    with pytest.raises(ThreadGone), transaction.atomic():
        lock_thread(2**60)


@pytest.mark.django_db
def test_another_holders_token_writes_nothing(alice):
    thread = thread_of(alice)
    token = uuid.uuid4()
    until = clock.now() + timedelta(seconds=30)
    Thread.objects.filter(pk=thread.pk).update(state="running", lease_token=token, lease_until=until)
    assert lock_thread(thread.pk, token).lease_token == token
    with pytest.raises(LeaseLost):
        lock_thread(thread.pk, uuid.uuid4())
    with clock.moved(31), pytest.raises(LeaseLost):
        lock_thread(thread.pk, token)
    Thread.objects.filter(pk=thread.pk).update(state="idle", lease_token=None, lease_until=None)
    with pytest.raises(LeaseLost):
        lock_thread(thread.pk, token)


@pytest.mark.django_db(transaction=True)
def test_a_lock_of_an_earlier_transaction_does_not_count(alice):
    thread = thread_of(alice)
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        append(locked, live_generation(locked), Message.Role.USER, text="in time")
    for wait_for in (thread, locked, Thread.objects.get(pk=thread.pk)):
        with pytest.raises(NotLocked), transaction.atomic():
            append(wait_for, live(thread), Message.Role.USER, text="too late")
        with pytest.raises(NotLocked), transaction.atomic():
            append_many(wait_for, live(thread), [NewMessage(role="user")])
    assert Message.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_thread_counts_as_locked_in_the_transaction_that_makes_it(alice):
    with transaction.atomic():
        thread = create_thread(alice)
        append(thread, live_generation(thread), Message.Role.USER, text="first words")
    with pytest.raises(NotLocked), transaction.atomic():
        append(create_thread_alone(alice), live(thread), Message.Role.USER)


def create_thread_alone(owner):
    made = []
    worker = threading.Thread(target=lambda: (made.append(create_thread(owner)), connection.close()))
    worker.start()
    worker.join()
    return made[0]


@pytest.mark.django_db
def test_an_ended_thread_takes_no_more_words(alice):
    thread = thread_of(alice)
    end(thread)
    with pytest.raises(NoLiveGeneration):
        live_generation(thread)


@pytest.mark.django_db
def test_appending_is_one_insert_and_finishing_an_answer_one_update(alice):
    thread = lock_thread(thread_of(alice).pk)
    generation = live_generation(thread)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        answer = append(thread, generation, Message.Role.ASSISTANT)
    assert [query["sql"].split()[0] for query in queries] == ["INSERT"]
    with CaptureQueriesContext(connection) as queries:
        finish_answer(answer, text="done", wire='[{"type":"text","text":"done"}]', model="emulator-light")
    assert [query["sql"].split()[0] for query in queries] == ["UPDATE"]
    answer.refresh_from_db()
    assert (answer.text, answer.model, answer.search_text) == ("done", "emulator-light", "done")


@pytest.mark.django_db
def test_an_answer_without_blocks_is_never_sent(alice):
    thread = lock_thread(thread_of(alice).pk)
    answer = append(thread, live_generation(thread), Message.Role.ASSISTANT)
    finish_answer(answer, text="", wire="[]")
    answer.refresh_from_db()
    assert answer.wire is None


@pytest.mark.django_db
def test_an_answer_is_finished_once(alice):
    answer = say(thread_of(alice), Message.Role.ASSISTANT, "first")
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        finish_answer(answer, text="second", wire='[{"type":"text","text":"second"}]')
    assert refine(caught.value).name == "message_wire_written_once"


@pytest.mark.django_db
def test_nul_and_lone_surrogates_become_visible_everywhere(alice):
    bad = "a\x00b\ud800c"
    message = say(thread_of(alice), Message.Role.USER, bad, blocks=[text_block(bad)], meta={"note": bad, "list": [bad]})
    message.refresh_from_db()
    good = "a␀b\\ud800c"
    assert message.text == good
    assert json.loads(message.wire) == [{"type": "text", "text": good}]
    assert message.meta == {"note": good, "list": [good]}
    assert message.search_text == good


@pytest.mark.django_db
def test_blocks_and_wire_together_are_refused(alice):
    with pytest.raises(ValueError, match="not both"):
        say(thread_of(alice), Message.Role.USER, "x", blocks=[], wire="[]")


@pytest.mark.django_db
def test_wire_is_kept_byte_for_byte(alice):
    wire = '[{"type":"tool_use","id":"toolu_1","name":"look","input":{"b":1.50,"a":[1e5,"é"],"":null}}]'
    message = say(thread_of(alice), Message.Role.ASSISTANT, wire=wire)
    message.refresh_from_db()
    assert message.wire == wire


@pytest.mark.django_db
def test_many_rows_get_ids_in_their_order(alice):
    thread = lock_thread(thread_of(alice).pk)
    rows = [NewMessage(role="user", text=str(number)) for number in range(2500)]
    made = append_many(thread, live_generation(thread), rows)
    stored = Message.objects.filter(thread=thread).order_by("id").values_list("id", "text")
    assert list(stored) == [(message.pk, message.text) for message in made]
    assert [text for _id, text in stored] == [str(number) for number in range(2500)]


def test_search_text_is_folded_and_holds_every_string_of_the_arguments():
    composed, decomposed = "Caf\u00e9", "Cafe\u0301"
    assert search_text_of(composed) == search_text_of(decomposed) == "caf\u00e9"
    assert search_text_of("STRASSE") == search_text_of("Straße")
    arguments = {"path": "A\\b", "deep": [{"text": "\u4f60\u597d"}, 3, None], "Key": "v"}
    assert search_text_of("T", arguments).split(transcript.FIELD_SEPARATOR) == ["t", "a\\b", "\u4f60\u597d", "v"]


@pytest.mark.django_db
def test_a_tool_calls_arguments_are_found_decoded(alice):
    message = call_tool(thread_of(alice), arguments={"command": 'say "Ünïcode"\n'}, text="looking")
    assert message.search_text.split(transcript.FIELD_SEPARATOR) == ["looking", 'say "ünïcode"\n']


@pytest.mark.django_db(transaction=True)
def test_a_second_writer_waits_so_ids_commit_in_order(alice):
    thread = thread_of(alice)

    def write(text):
        locked = lock_thread(thread.pk)
        return append(locked, live_generation(locked), Message.Role.USER, text=text)

    first = Elsewhere(lambda: write("first"))
    assert first.began.wait(20)
    second = Elsewhere(lambda: write("second"))
    second.may_commit.set()
    wait_until_blocked()
    first.finish()
    second.finish()
    assert first.result.pk < second.result.pk
    assert list(Message.objects.order_by("id").values_list("text", flat=True)) == ["first", "second"]


@pytest.mark.django_db(transaction=True)
def test_a_lock_leaves_rows_of_other_tables_free_to_refer_to_the_thread(alice):
    thread = thread_of(alice)
    holder = Elsewhere(lambda: lock_thread(thread.pk))
    assert holder.began.wait(20)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
        Generation.objects.filter(thread=thread).update(summary="")
        Message.objects.create(thread=thread, owner=alice, generation=live(thread), role="event")
    holder.finish()


@pytest.mark.django_db(transaction=True)
def test_two_transactions_cannot_make_the_same_generation_or_leave_a_gap(alice):
    thread = thread_of(alice)
    Generation.objects.filter(thread=thread).update(ended=clock.now(), end_reason="idle")

    def make():
        return Generation.objects.create(thread=thread, owner=alice, ordinal=2)

    first = Elsewhere(make)
    assert first.began.wait(20)
    second = Elsewhere(make)
    second.may_commit.set()
    wait_until_blocked()
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        Generation.objects.create(thread=thread, owner=alice, ordinal=3)
    assert refine(caught.value).name == "generation_ordinals_without_gaps"
    first.finish()
    second.finish()
    assert refine(second.error).name in ("generation_ordinal_once", "generation_one_live_per_thread")
    assert list(Generation.objects.order_by("ordinal").values_list("ordinal", flat=True)) == [1, 1, 2]
