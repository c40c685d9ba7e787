"""The index of long texts is in step with the rows, whichever way they are written, and never loses one."""

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts import erasing
from accounts.models import User
from tests.threads.conversation import Conversation
from tests.threads.records import exchange, say, thread_of
from tests.threads.test_verification import STEP, take_step
from threads import copying, message_grams
from threads import search_statements as statements
from threads.message_grams import LONG_BYTES, array, grams_of, grams_of_needle, is_long, thread_gram
from threads.models import Message, MessageGrams
from threads.search_range import LAST_ROW, Range
from threads.transcript import NewMessage, append_many, finish_answer, live_generation, lock_thread
from threads.visibility import Viewer


def check_in_step():
    rows = {row.pk: row for row in Message.objects.all() if len(row.search_text.encode()) > LONG_BYTES}
    indexed = {row.pk: row for row in MessageGrams.objects.all()}
    assert indexed.keys() == rows.keys()
    for pk, grams in indexed.items():
        row = rows[pk]
        assert (grams.owner_id, grams.thread_id) == (row.owner_id, row.thread_id)
        assert grams.grams == [thread_gram(row.thread_id), *grams_of(row.search_text)]
    return len(rows)


@pytest.mark.django_db
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, min_size=3, max_size=12), data=st.data())
def test_the_index_is_in_step_with_the_rows_of_any_conversation(steps, data):
    class Undone(Exception):
        pass

    with pytest.raises(Undone), transaction.atomic():
        conversations = [Conversation(User.objects.create(username="somebody"))]
        for step in steps:
            padding = data.draw(st.sampled_from(["", " word" * 500, "长" * 700]))
            take_step(conversations, step | {"text": f"{step['text']}{padding}", "inputs": [padding]})
        check_in_step()
        for conversation in conversations[1:]:
            erasing.erase_thread(conversation.thread)
        check_in_step()
        raise Undone


@pytest.mark.django_db
def test_rows_appended_in_bulk_and_answers_finished_later_are_indexed(alice):
    thread = thread_of(alice)
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        generation = live_generation(locked)
        append_many(locked, generation, [NewMessage("user", text="word " * size) for size in (1, 1_000, 2, 2_000)])
    answer = say(thread, "assistant", "", wire=None, blocks=None)
    with transaction.atomic():
        finish_answer(answer, text="long " * 1_000, wire=None)
    assert check_in_step() == 3


@pytest.mark.django_db
def test_copies_are_indexed_for_their_own_thread(alice):
    thread = thread_of(alice)
    _question, answer = exchange(thread, "word " * 1_000, "word " * 1_000)
    copying.fork(alice, thread, answer, acting_user=alice)
    assert check_in_step() == 4


@pytest.mark.django_db
def test_an_erased_person_leaves_no_index(alice, bob):
    for person in (alice, bob):
        say(thread_of(person), "user", "word " * 1_000)
    erasing.erase_user(alice)
    assert check_in_step() == 1


@pytest.mark.django_db
def test_the_index_follows_rows_that_plain_sql_writes(alice):
    thread = thread_of(alice)
    kept, changed, shortened, gone = (say(thread, "user", f"{number} " + "word " * 1_000) for number in range(4))
    copied = "thread_id, owner_id, generation_id, role, text, wire, model, tool_call_id, is_error, model_visible,"
    copied += " left_because, meta, created"
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE threads_message SET search_text = 'short now' WHERE id = %s", [shortened.pk])
        cursor.execute("DELETE FROM threads_messagegrams WHERE message_id = %s", [gone.pk])
        cursor.execute("DELETE FROM threads_message WHERE id = %s", [gone.pk])
        cursor.execute(
            f"INSERT INTO threads_message ({copied}, search_text) SELECT {copied}, search_text || ' more'"
            " FROM threads_message WHERE id = %s RETURNING id",
            [kept.pk],
        )
        [(written,)] = cursor.fetchall()
        cursor.execute("UPDATE threads_message SET search_text = search_text || ' end' WHERE id = %s", [changed.pk])
        # What is not indexed again is refused, so whoever writes so does this too.
        message_grams.index(Message.objects.filter(pk__in=[changed.pk, written]))
        connection.check_constraints()
    assert check_in_step() == 3


@pytest.mark.django_db
def test_folded_text_is_stored_so_that_reading_it_costs_no_unpacking(alice):
    say(thread_of(alice), "user", "word " * 10_000)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_column_compression(search_text), pg_column_size(search_text) FROM threads_message")
        compression, size = cursor.fetchone()
    assert compression == "lz4" or (compression is None and size == 50_000)


@pytest.mark.django_db
def test_a_question_of_the_index_reads_the_index_and_leaves_the_planner_as_it_was(alice):
    thread = thread_of(alice)
    say(thread, "user", "the needle " + "word " * 1_000)
    for number in range(100):
        say(thread, "user", f"row {number} " + "other " * 400)
    grams = [array([thread_gram(thread.pk), *grams_of_needle("needle")])]
    with connection.cursor() as cursor:
        # What the planner knows of the tables is of these rows, whatever other tests left behind.
        cursor.execute("ANALYZE threads_messagegrams; ANALYZE threads_message")
        cursor.execute(statements.BY_GRAM_INDEX)
        plans = [
            explain(cursor, statement, thread, grams=grams)
            for statement in (statements.CANDIDATES, statements.CANDIDATES_SHOWN)
        ]
        cursor.execute(statements.AS_USUAL)
        assert all("Bitmap Index Scan on messagegrams_grams" in plan for plan in plans), "\n\n".join(plans)
        # Whether a candidate is shown is asked of its own row, never of the whole table.
        assert "Seq Scan" not in plans[1] and "hashed" not in plans[1]
        assert Range(Viewer.of_thread(thread), thread).holding("needle").ids
        cursor.execute("SELECT current_setting('enable_seqscan'), current_setting('enable_indexscan')")
        assert cursor.fetchone() == ("on", "on")


@pytest.mark.django_db
def test_a_row_behind_many_that_only_seem_to_hold_a_needle_is_found(alice):
    thread = thread_of(alice)
    needle = "abcabd"
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        seeming = NewMessage("user", text="abca " + "bcab cabd " + "." * 2_000, wire="[]")
        held = NewMessage("user", text=f"{needle} {'.' * 2_000}", wire="[]")
        rows = append_many(locked, live_generation(locked), [held, *[seeming] * 600])
    found = Range(Viewer.of_thread(thread), thread).holding(needle)
    assert (found.ids, found.complete) == ([rows[0].pk], True)


@pytest.mark.django_db
def test_short_rows_are_read_without_passing_by_long_ones(alice):
    thread = thread_of(alice)
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        texts = ["word " * (1_000 if number % 2 else 1) for number in range(400)]
        append_many(locked, live_generation(locked), [NewMessage("user", text=text) for text in texts])
    with connection.cursor() as cursor:
        # Of a table so small the planner would rather sort what another index finds.
        cursor.execute("ANALYZE threads_message; SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        for statement in (statements.SHORT_HOLDING, statements.short_holding_any(2)):
            plan = explain(cursor, statement, thread, needle="needle", n0="needle", n1="pin")
            assert "message_short_order" in plan


def explain(cursor, statement, thread, **parameters):
    parameters |= {"thread": thread.pk, "owner": thread.owner_id, "upto": LAST_ROW, "only_cold": False, "limit": 10}
    parameters |= {"threads": [thread.pk], "uptos": [LAST_ROW]}
    cursor.execute(f"EXPLAIN {statement}", parameters)
    return "\n".join(line for (line,) in cursor.fetchall())


@given(text=st.text(max_size=300), data=st.data())
def test_a_text_has_every_gram_of_any_piece_of_it(text, data):
    text = text.encode("utf-8", "ignore").decode()
    begin, end = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
    assert set(grams_of_needle(text[begin:end])) <= set(grams_of(text))


def test_grams_fit_their_column_and_a_needle_asks_for_few():
    assert all(0 <= gram < 2**24 for gram in grams_of("any text, 任何文字 🚀" * 50))
    assert grams_of("abcabc") == [0x616263, 0x626361, 0x636162]
    assert grams_of("ab") == grams_of("") == grams_of_needle("") == []
    assert len(grams_of_needle("a long needle of many different words, which says more than is worth asking for")) == 32
    assert all(-(2**31) <= thread_gram(number) < 0 for number in (1, 2**31 - 1, 2**31, 2**40))


@pytest.mark.parametrize(
    ("text", "long"), [("x" * 2_000, False), ("x" * 2_001, True), ("长" * 666, False), ("长" * 667, True)]
)
def test_length_is_counted_in_bytes_as_the_database_does(text, long):
    assert is_long(text) is long
