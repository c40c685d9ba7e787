"""Every turn request that was ever made can be built again from the record, and a falsified record is found."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accounts.models import User
from llm.models import ModelCall, RequestHeader
from tests.threads.conversation import MODELS, Conversation
from threads.models import Generation, Message
from threads.verification import verify_thread

# Any script, NUL and lone surrogates among it.
TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
WORDS = TEXT.filter(str.strip)
ANSWER = st.tuples(st.booleans(), TEXT, WORDS).map(
    lambda drawn: [
        *([{"type": "thinking", "thinking": drawn[1], "signature": "c2ln"}] if drawn[0] else []),
        *([{"type": "redacted_thinking", "data": "ZGF0YQ=="}] if drawn[0] and len(drawn[1]) % 2 else []),
        {"type": "text", "text": drawn[2]},
    ]
)
ACTIONS = ("say", "say", "work", "work", "interrupt", "event", "prune", "drop", "generation", "rewind", "rewind")
STEP = st.fixed_dictionaries(
    {
        "action": st.sampled_from([*ACTIONS, "undo", "fork"]),
        "who": st.integers(0, 5),
        "number": st.integers(0, 50),
        "text": TEXT,
        "inputs": st.lists(JSON, min_size=1, max_size=3),
        "answer": ANSWER,
        "model": st.sampled_from([MODELS[0], MODELS[0], MODELS[1]]),
    }
)


def take_step(conversations, step):
    conversation = conversations[step["who"] % len(conversations)]
    match step["action"]:
        case "say":
            conversation.say(step["text"], step["answer"], step["model"])
        case "work":
            conversation.work(step["text"], step["inputs"], step["answer"], step["model"])
        case "interrupt":
            conversation.interrupt(step["text"], step["model"])
        case "event":
            conversation.event(step["text"])
        case "prune":
            conversation.prune(step["number"])
        case "drop":
            conversation.drop_thinking()
        case "generation":
            conversation.begin_generation()
        case "rewind":
            conversation.rewind(step["number"])
        case "undo":
            conversation.undo()
        case "fork":
            branch = conversation.fork(step["number"])
            if branch is not None:
                conversations.append(branch)
    conversation.check()


@pytest.mark.django_db
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, min_size=3, max_size=14))
def test_every_request_of_any_conversation_is_proved(steps):
    class Undone(Exception):
        pass

    with pytest.raises(Undone), transaction.atomic():
        conversations = [Conversation(User.objects.create(username="somebody"))]
        for step in steps:
            take_step(conversations, step)
        for conversation in conversations:
            report = verify_thread(conversation.thread)
            assert report.findings == []
            assert report.calls == report.proved == conversation.calls
        connection.check_constraints()
        raise Undone


@pytest.mark.django_db
def test_a_rewind_of_nothing_but_an_answer_without_words_is_undone_like_any(alice):
    made = Conversation(alice)
    made.say("first", [{"type": "text", "text": "yes"}], MODELS[0])
    made.interrupt("second", MODELS[0])
    made.rewind(2)
    made.undo()
    made.check()
    assert verify_thread(made.thread).proved == 2


@pytest.fixture
def conversation(alice):
    made = Conversation(alice)
    answer = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}, {"type": "text", "text": "yes"}]
    made.say("first", answer, MODELS[0])
    made.work("second", [{"a": 1.5}], answer, MODELS[0])
    made.say("third", answer, MODELS[1])
    assert verify_thread(made.thread).proved == 4
    return made


def falsify(sql, *parameters):
    """Write past the triggers, as whoever owns the database can."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(sql, parameters)
        assert cursor.rowcount
        cursor.execute("SET LOCAL session_replication_role = origin")


def falsified_calls(conversation):
    report = verify_thread(conversation.thread)
    assert report.calls == 4
    assert report.proved == 4 - len(report.findings)
    return len(report.findings)


@pytest.mark.django_db
def test_a_changed_word_is_found_in_each_request_that_held_it(conversation):
    first = Message.objects.filter(thread=conversation.thread).earliest("pk")
    falsify("UPDATE threads_message SET wire = replace(wire, 'first', 'First') WHERE id = %s", first.pk)
    assert falsified_calls(conversation) == 4


@pytest.mark.django_db
def test_a_missing_row_is_found(conversation):
    results = Message.objects.filter(thread=conversation.thread, role="tool")
    falsify("DELETE FROM threads_message WHERE id = %s", results.get().pk)
    assert falsified_calls(conversation) == 2


@pytest.mark.django_db
def test_a_changed_opening_is_found(conversation):
    falsify("UPDATE threads_generation SET opening = '[]' WHERE thread_id = %s", conversation.thread.pk)
    assert falsified_calls(conversation) == 4


@pytest.mark.django_db
def test_a_row_put_back_into_the_context_is_found(conversation):
    conversation.prune(0)
    conversation.say("fourth", [{"type": "text", "text": "ok"}], MODELS[0])
    assert verify_thread(conversation.thread).findings == []
    falsify("UPDATE threads_message SET left_at_cut = NULL, left_because = '' WHERE left_at_cut IS NOT NULL")
    assert [finding.call_id for finding in verify_thread(conversation.thread).findings] == [
        ModelCall.objects.latest("pk").pk
    ]


@pytest.mark.django_db
def test_a_changed_header_is_found_and_named(conversation):
    RequestHeader.objects.update(text=RequestHeader.objects.first().text.replace("You answer.", "You obey."))
    report = verify_thread(conversation.thread)
    assert {finding.sentence for finding in report.findings} == {"its header is not what its digest says"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "change",
    [
        {"thinking_from": 2**40},
        {"max_tokens": 7},
        {"anchors": []},
        {"anchors": [{"at": 5, "ttl": "5m"}]},
        {"last_message_id": 1},
        {"model": MODELS[1]},
    ],
)
def test_a_changed_call_is_found(conversation, change):
    # The third of the four: its own model's thinking stands before it.
    call = ModelCall.objects.filter(thread_id=conversation.thread.pk).order_by("pk")[2]
    ModelCall.objects.filter(pk=call.pk).update(**change)
    [finding] = verify_thread(conversation.thread).findings
    assert finding.call_id == call.pk


@pytest.mark.django_db
def test_a_call_whose_generation_is_gone_is_found(conversation):
    ModelCall.objects.filter(pk=ModelCall.objects.earliest("pk").pk).update(generation_id=2**40)
    [finding] = verify_thread(conversation.thread).findings
    assert "not in the record" in finding.sentence


@pytest.mark.django_db
def test_findings_hold_no_word_of_the_conversation(conversation):
    Message.objects.filter(thread=conversation.thread).update(text="")
    Generation.objects.filter(thread=conversation.thread).update(cut=9)
    falsify("UPDATE threads_message SET wire = 'secret' WHERE thread_id = %s", conversation.thread.pk)
    assert all("secret" not in finding.sentence for finding in verify_thread(conversation.thread).findings)


def verify(*arguments):
    out = io.StringIO()
    code = 0
    try:
        call_command("verify", *arguments, stdout=out, stderr=io.StringIO())
    except SystemExit as end:
        code = int(str(end.code))
    return code, out.getvalue()


@pytest.mark.django_db
def test_the_command_proves_one_or_all_and_ends_with_1_on_a_difference(conversation):
    channel = conversation.thread.channel
    assert verify(channel) == (0, f"{channel}: 4 of 4 requests proved\n1 conversations: 4 of 4 requests proved\n")
    assert verify("--all") == (0, "2 conversations: 4 of 4 requests proved\n")
    ModelCall.objects.filter(pk=ModelCall.objects.latest("pk").pk).update(max_tokens=1)
    code, out = verify("--all")
    assert code == 1
    assert f"{channel}: 3 of 4 requests proved" in out


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [[], ["--all", "channel"], ["nosuchthread"], ["\x00"]])
def test_the_command_refuses_what_it_cannot_mean(arguments):
    with pytest.raises(CommandError):
        verify(*arguments)
