"""Each rule of the records, refused by the database to the ORM, to a query set and to plain SQL."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import Model

from maxclaw import clock
from tests.threads.records import copied, exchange, live, say, thread_of
from threads.models import Generation, Message, MessageGrams, PrivateReading, Thread
from threads.rules import RULES, TRIGGERS, refine

pytestmark = pytest.mark.django_db
# The same number twice takes two transactions at once, see test_transcript.
UNDER_A_RACE = next(name for name in RULES if name.endswith("ordinal_once"))


def refused(rule: str, write: Callable[[], object]) -> None:
    """The write ends in an IntegrityError that names the rule, at once or when the transaction commits."""
    connection.check_constraints()  # what the test wrote before stands
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        write()
        connection.check_constraints()
    violation = refine(caught.value)
    assert violation is not None, caught.value
    assert violation.name == rule
    assert str(violation) == str(RULES[rule])


def change(row: Model, rule: str, column: str, value: object) -> None:
    """A change of one column is refused in all three ways in, and the row is as before."""
    model = type(row)
    field = model._meta.get_field(column)
    before = getattr(model.objects.get(pk=row.pk), field.attname)

    def through_save() -> None:
        changed = model.objects.get(pk=row.pk)
        setattr(changed, field.attname, value)
        changed.save()

    def through_sql() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f'UPDATE {model._meta.db_table} SET "{field.column}" = %s WHERE id = %s',
                [field.get_db_prep_value(value, connection), row.pk],
            )

    refused(rule, through_save)
    refused(rule, lambda: model.objects.filter(pk=row.pk).update(**{field.attname: value}))
    refused(rule, through_sql)
    assert getattr(model.objects.get(pk=row.pk), field.attname) == before


def insert(rule: str, row: Model) -> None:
    """An insert is refused through the ORM, in bulk, and in plain SQL."""
    model = type(row)
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]

    def through_sql() -> None:
        columns = ", ".join(f'"{field.column}"' for field in fields)
        values = [field.get_db_prep_value(getattr(row, field.attname), connection) for field in fields]
        with connection.cursor() as cursor:
            cursor.execute(
                f"INSERT INTO {model._meta.db_table} ({columns}) VALUES ({', '.join(['%s'] * len(fields))})",
                values,
            )

    refused(rule, row.save)
    row.pk = None
    refused(rule, lambda: model.objects.bulk_create([row]))
    refused(rule, through_sql)


def test_wire_never_changes_once_set(alice):
    message = say(thread_of(alice), Message.Role.USER, "said")
    change(message, "message_wire_written_once", "wire", '[{"type":"text","text":"never said"}]')
    change(message, "message_wire_written_once", "wire", None)


def test_wire_goes_from_null_to_its_value(alice):
    message = say(thread_of(alice), Message.Role.ASSISTANT, "", wire=None)
    Message.objects.filter(pk=message.pk).update(wire='[{"type":"text","text":"now said"}]')
    change(message, "message_wire_written_once", "wire", "[]")


def test_the_text_that_people_read_may_be_corrected_without_the_wire(alice):
    message = say(thread_of(alice), Message.Role.USER, "said")
    Message.objects.filter(pk=message.pk).update(text="shown otherwise")


def test_a_quote_never_changes_once_given(alice):
    message = say(thread_of(alice), Message.Role.USER, "see", meta={"quote": {"text": "then"}, "seen": 1})
    change(message, "message_quote_frozen", "meta", {"quote": {"text": "now"}, "seen": 1})
    change(message, "message_quote_frozen", "meta", {"seen": 1})
    Message.objects.filter(pk=message.pk).update(meta={"quote": {"text": "then"}, "seen": 2})


def test_a_message_stays_where_it_was_said(alice, bob):
    here, there = thread_of(alice), thread_of(alice, scope="isolated")
    message, other = say(here, Message.Role.USER), say(there, Message.Role.USER)
    rule = "message_stays_where_it_was_said"
    for column, value in (("thread", there.pk), ("generation", live(there).pk), ("owner", bob.pk)):
        change(message, rule, column, value)
    place = {"thread": there, "generation": live(there)}
    refused(rule, lambda: Message.objects.filter(pk=message.pk).update(**place))
    refused(rule, lambda: Message.objects.filter(pk=other.pk).update(id=-1))


def test_a_message_stays_as_it_was_said(alice):
    message = say(thread_of(alice), Message.Role.USER, meta={"seen": 1})
    rule = "message_stays_as_it_was_said"
    for column, value in (("role", "tool"), ("is_error", True), ("model_visible", False)):
        change(message, rule, column, value)
    change(message, rule, "meta", {"seen": 1, "source": "framework"})
    Message.objects.filter(pk=message.pk).update(meta={"seen": 2})


def test_a_generation_stays_in_its_conversation(alice, bob):
    here, there = live(thread_of(alice)), thread_of(alice)
    rule = "generation_stays_in_its_thread"
    change(here, rule, "thread", there.pk)
    change(here, rule, "owner", bob.pk)
    refused(rule, lambda: Generation.objects.filter(pk=here.pk).update(id=here.pk + 1_000))


def test_a_row_leaves_its_context_once(alice):
    message = say(thread_of(alice), Message.Role.USER)
    Message.objects.filter(pk=message.pk).update(left_at_cut=1, left_because="cold")
    change(message, "message_leaves_once", "left_at_cut", 2)

    def return_it() -> None:
        Message.objects.filter(pk=message.pk).update(left_at_cut=None, left_because="")

    refused("message_leaves_once", return_it)


def test_cold_may_become_superseded_and_nothing_else(alice):
    message = say(thread_of(alice), Message.Role.USER)
    Message.objects.filter(pk=message.pk).update(left_at_cut=1, left_because="cold")
    Message.objects.filter(pk=message.pk).update(left_because="superseded")
    change(message, "message_leaves_once", "left_because", "cold")


def test_a_row_that_left_says_why(alice):
    message = say(thread_of(alice), Message.Role.USER)
    change(message, "message_left_says_why", "left_at_cut", 1)
    change(message, "message_left_says_why", "left_because", "cold")


def test_a_copy_stays_the_copy_of_one_message_and_erasing_may_null_it(alice):
    thread = thread_of(alice)
    first, second = exchange(thread)
    copy = copied(first, thread)
    change(copy, "message_copied_from_frozen", "copied_from", second.pk)
    change(copy, "message_copied_from_frozen", "copied_from", copy.pk)
    Message.objects.filter(pk=copy.pk).update(copied_from=None)
    # What was said becomes no copy, whether it was one or not.
    change(copy, "message_copied_from_frozen", "copied_from", first.pk)
    change(second, "message_copied_from_frozen", "copied_from", first.pk)


def test_no_message_is_a_copy_of_itself(alice):
    message = say(thread_of(alice), Message.Role.USER)
    own = Message.objects.get(pk=message.pk)
    own.pk, own.copied_from_id = message.pk + 1_000, message.pk + 1_000
    refused("message_no_copy_of_itself", lambda: own.save(force_insert=True))


def test_an_opening_never_changes_once_rendered(alice):
    generation = live(thread_of(alice))
    Generation.objects.filter(pk=generation.pk).update(opening='[{"type":"text","text":"frozen"}]')
    change(generation, "generation_opening_written_once", "opening", "[]")
    change(generation, "generation_opening_written_once", "opening", None)


def test_what_an_opening_holds_never_changes_once_it_is_rendered(alice):
    generation = live(thread_of(alice))
    standing = [{"text": "No emoji", "message_id": 1}]
    Generation.objects.filter(pk=generation.pk).update(summary_before="before it opens", standing=standing)
    Generation.objects.filter(pk=generation.pk).update(opening="[]", summary_before="as it opens")
    change(generation, "generation_opened_with_frozen", "summary_before", "never said so")
    change(generation, "generation_opened_with_frozen", "standing", [])
    Generation.objects.filter(pk=generation.pk).update(cut=1, summary="written when it ended")


def test_a_generation_ends_once(alice):
    generation = live(thread_of(alice))
    Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason="idle")
    change(generation, "generation_ends_once", "ended", None)
    change(generation, "generation_ends_once", "ended", clock.now())
    change(generation, "generation_ends_once", "end_reason", "manual")
    Generation.objects.filter(pk=generation.pk).update(summary="written when it ended")


def test_ordinals_have_no_gaps(alice):
    thread = thread_of(alice)
    ended = Generation.objects.filter(thread=thread)
    ended.update(ended=clock.now(), end_reason="idle")
    insert("generation_ordinals_without_gaps", Generation(thread=thread, owner=alice, ordinal=3))
    insert("generation_ordinals_without_gaps", Generation(thread=thread, owner=alice, ordinal=0))
    change(ended.get(), "generation_ordinals_without_gaps", "ordinal", 2)
    Generation.objects.create(thread=thread, owner=alice, ordinal=2)


def test_the_first_generation_is_number_one(alice):
    thread = Thread.objects.create(owner=alice)
    insert("generation_ordinals_without_gaps", Generation(thread=thread, owner=alice, ordinal=2))


def test_a_thread_has_one_live_generation(alice):
    thread = thread_of(alice)
    insert("generation_one_live_per_thread", Generation(thread=thread, owner=alice, ordinal=2))


def test_cuts_are_counted_from_zero(alice):
    change(live(thread_of(alice)), "generation_cut_counts_up", "cut", -1)


def test_a_message_belongs_to_a_generation_of_its_own_thread(alice):
    here, there = thread_of(alice), thread_of(alice)
    rule = "message_generation_of_its_thread"
    insert(rule, Message(thread=here, owner=alice, generation=live(there), role="user"))


def test_a_message_belongs_to_the_owner_of_its_thread(alice, bob):
    thread = thread_of(alice)
    rule = "message_owner_is_the_threads"
    insert(rule, Message(thread=thread, owner=bob, generation=live(thread), role="user"))


def test_a_generation_belongs_to_the_owner_of_its_thread(alice, bob):
    thread = thread_of(alice)
    Generation.objects.filter(thread=thread).update(ended=clock.now(), end_reason="idle")
    insert("generation_owner_is_the_threads", Generation(thread=thread, owner=bob, ordinal=2))


def test_a_reading_is_noted_with_the_owner_of_what_was_read(alice, bob):
    thread = thread_of(alice)
    reading = PrivateReading(reader=bob, owner=bob, thread=thread, what="conversation")
    insert("privatereading_owner_is_the_threads", reading)


def test_the_index_of_a_message_has_the_owner_of_its_thread(alice, bob):
    message = say(thread_of(alice), Message.Role.USER, "long " * 1_000)
    rule = "messagegrams_owner_is_the_threads"
    refused(rule, lambda: MessageGrams.objects.filter(pk=message.pk).update(owner=bob))
    short = say(thread_of(alice), Message.Role.USER, "short")
    refused(rule, lambda: MessageGrams.objects.create(message=short, thread=short.thread, owner=bob, grams=[1]))


def test_a_long_message_is_in_its_index_as_it_is(alice):
    rule = "message_long_is_indexed"
    message = say(thread_of(alice), Message.Role.USER, "long " * 1_000)
    change(message, rule, "search_text", "other " * 1_000)
    refused("messagegrams_of_every_long_message", lambda: MessageGrams.objects.filter(pk=message.pk).delete())
    insert(rule, Message(thread=message.thread, owner=alice, generation=message.generation, search_text="x" * 2_001))
    say(message.thread, Message.Role.USER, "x" * 2_000)


def test_a_parent_belongs_to_the_same_owner(alice, bob):
    change(thread_of(alice), "thread_parent_of_same_owner", "parent", thread_of(bob).pk)


def test_an_island_belongs_to_the_same_owner(alice, bob):
    isolated = thread_of(alice, scope="isolated")
    change(isolated, "thread_island_of_same_owner", "island", thread_of(bob, scope="isolated").pk)


def test_isolated_threads_alone_have_an_island(alice):
    open_thread, isolated = thread_of(alice), thread_of(alice, scope="isolated")
    rule = "thread_isolated_has_island"
    change(open_thread, rule, "island", isolated.pk)
    change(open_thread, rule, "scope", "isolated")
    change(isolated, rule, "scope", "open")


def test_an_account_has_one_main_thread(alice):
    change(thread_of(alice), "thread_one_main_per_owner", "kind", "main")


def test_a_running_thread_has_a_lease_and_a_resting_one_none(alice):
    thread = thread_of(alice)
    change(thread, "thread_running_has_lease", "state", "running")
    change(thread, "thread_running_has_lease", "lease_until", clock.now())


def test_every_rule_is_driven_by_a_test():
    source = Path(__file__).read_text()
    driven = {name for name in RULES if f'"{name}"' in source}
    assert driven == set(RULES) - {UNDER_A_RACE}
    assert set(TRIGGERS) <= driven


def test_deleting_a_thread_in_plain_sql_takes_its_rows_along_and_leaves_branches(alice):
    thread = thread_of(alice)
    message, _answer = exchange(thread)
    task = thread_of(alice, kind="task", parent=thread)
    branch = thread_of(alice, copied_from=message)
    copy = copied(message, branch)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM threads_thread WHERE id = %s", [thread.pk])
        connection.check_constraints()
    assert not Message.objects.filter(thread_id=thread.pk).exists()
    assert not Generation.objects.filter(thread_id=thread.pk).exists()
    assert Thread.objects.get(pk=task.pk).parent_id is None
    assert Thread.objects.get(pk=branch.pk).copied_from_id is None
    assert Message.objects.get(pk=copy.pk).copied_from_id is None


def test_deleting_an_isolated_thread_through_the_orm_works(alice):
    thread = thread_of(alice, scope="isolated")
    exchange(thread)
    thread.delete()
    connection.check_constraints()


def test_an_error_of_another_kind_is_no_rule(alice):
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        Thread.objects.create(owner=alice, channel=thread_of(alice).channel)
    assert refine(caught.value) is None
    assert refine(IntegrityError("no cause")) is None
