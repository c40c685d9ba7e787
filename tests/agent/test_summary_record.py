"""What a summary may cite and quote: the conversation's rows, and what it was copied from, up to that point."""

import time

import pytest
from django.db import connection, transaction

from accounts import erasing
from agent.models import ToolCall
from agent.questions import QUESTION_TOOL
from agent.summary import Standing
from agent.summary_check import carried, check
from agent.summary_record import ThreadRecord
from tests.agent.test_summary import ten_sections
from tests.threads.records import call_tool, exchange, give_result, live, thread_of
from tests.threads.test_literal_search import begin_generation, result_of_tool
from threads.copying import fork, rewind
from threads.models import Generation, Message

pytestmark = pytest.mark.django_db


def checked(thread, **bodies):
    with transaction.atomic():
        return check(ten_sections(**bodies), ThreadRecord(thread, live(thread)))


def test_a_branch_withdraws_what_it_inherited_and_cites_it(alice):
    thread = thread_of(alice)
    instruction, _answer = exchange(thread, "Never use emoji. Use metres.")
    result = result_of_tool(thread, "port 2222 is open")
    begin_generation(thread)
    inherited = [Standing("Never use emoji", instruction.pk), Standing("Use metres", instruction.pk)]
    entries = [{"text": entry.text, "message_id": entry.message_id} for entry in inherited]
    with connection.cursor() as cursor:
        # It is frozen with its opening; what stands in it is all that this test is about.
        cursor.execute("SET session_replication_role = replica")
        Generation.objects.filter(pk=live(thread).pk).update(standing=entries)
        cursor.execute("SET session_replication_role = origin")
    _asked, upto = exchange(thread, "Go on")
    later, _answer = exchange(thread, "Words said after the branch")
    branch = fork(alice, thread, upto, acting_user=alice)
    withdrawn, _answer = exchange(branch, "Emoji are fine.")

    found = checked(
        branch,
        s2=f'- Withdrawn: "Never use emoji" (m:{withdrawn.pk})\n- "Use metres" (m:{instruction.pk})',
        s4=f'- "port 2222 is open" (m:{result.pk})\n- "Words said after the branch" (m:{later.pk})',
    )
    assert carried(inherited, found) == [Standing("Use metres", instruction.pk)]
    assert f'"port 2222 is open" (m:{result.pk})' in found.text
    assert "Words said after" not in found.text
    assert f"m:{later.pk}" not in found.text
    # The model that writes the summary sees the copies, and may cite those.
    copy = Message.objects.get(thread=branch, copied_from=upto)
    assert f"m:{copy.pk}" in checked(branch, s4=f"- Gone on (m:{copy.pk})").text
    # When the conversation that it was branched from is gone, its instructions can still be withdrawn.
    erasing.erase_thread(thread)
    found = checked(branch, s2=f'- Withdrawn: "Use metres" (m:{withdrawn.pk})')
    assert found.withdrawn == ["Use metres"]


def test_neither_rewound_words_nor_those_of_strangers_are_evidence(alice, bob):
    thread = thread_of(alice)
    _first, kept = exchange(thread, "The shed")
    gone, _answer = exchange(thread, "Paint it black")
    theirs, _answer = exchange(thread_of(bob), "Paint it green")
    rewind(thread, kept, acting_user=alice)
    found = checked(thread, s5=f'- "Paint it black" (m:{gone.pk})\n- "Paint it green" (m:{theirs.pk})\n- "The shed"')
    assert "Paint" not in found.text
    assert "m:" not in found.text
    assert '- "The shed"' in found.text


def test_what_the_user_answered_to_a_question_card_is_the_users_words(alice):
    thread = thread_of(alice)
    exchange(thread, "Measure the shed")
    answers = {}
    for number, (tool, words) in enumerate({QUESTION_TOOL: "Always use metres", "look": "Always use feet"}.items()):
        asking = call_tool(thread, f"toolu_{number}")
        answers[tool] = give_result(thread, f"toolu_{number}", words)
        ToolCall.objects.create(
            message=asking,
            thread=thread,
            owner=alice,
            call_id=f"toolu_{number}",
            position=0,
            tool=tool,
            arguments={},
            status=ToolCall.Status.DONE,
            result=answers[tool],
        )
    told = '- The user wants: "Always use metres"', '- The user wants: "Always use feet"'
    listed = "\n".join(f'- "{row.text}" (m:{row.pk})' for row in answers.values())
    found = checked(thread, s2=listed, s3="\n".join(told))
    assert found.standing == [Standing("Always use metres", answers[QUESTION_TOOL].pk)]
    assert told[0] in found.text
    assert "feet" not in found.text


def test_a_word_of_the_users_is_a_whole_one_with_any_signs_around_it(alice):
    thread = thread_of(alice)
    exchange(thread, "I know C++ (a.b*c) and 好的 $x_1 [y]{2} \\d+ | it's ^so$.")
    for words in ("know C++", "(a.b*c)", "好", "$x_1 [y]{2}", "\\d+ |", "it's ^so$", "and 好的"):
        assert f"“{words}”" in checked(thread, s3=f"- The user said “{words}”").text, words
    for words in ("no", "kno", "now C", "x_12", "axbxc", "d+ | i", "nd 好的"):
        assert (
            words not in checked(thread, s3=f"- The user said “{words}”").text.partition("4. ")[0].rpartition("3. ")[2]
        )


def test_a_long_quotation_is_found_at_once_where_it_is_whole(alice):
    thread = thread_of(alice)
    words = "the oak and the elm " * 900 + "end"
    row, _answer = exchange(thread, f"x{words} | {words}")
    record = ThreadRecord(thread, live(thread))
    began = time.monotonic()
    assert record.said_by_user(words) == [row.pk]
    assert record.said_by_user(words[:-1]) == []
    assert time.monotonic() - began < 2
