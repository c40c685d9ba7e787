"""Importing data exports of ChatGPT and Claude."""

import io
import json
import threading
from collections import Counter

import pytest
from asgiref.sync import async_to_sync
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts import erasing
from agent.models import ImportedConversation, ToolCall, TurnEvent
from agent.projection import message_views
from chat.snapshot import apply, snapshot
from llm.catalog import get
from llm.emulator.client import text
from llm.estimates import estimate_tokens
from tests.agent import exports
from tests.agent.world import running_world
from threads.copying import rewind
from threads.models import Generation, Message, Thread
from threads.transcript import append, live_generation, lock_thread, text_block
from threads.verification import verify_thread

pytestmark = pytest.mark.django_db

FORMATS = {"chatgpt": exports.chatgpt_conversation, "claude": exports.claude_conversation}
# How many the large export of each has.
CONVERSATIONS = 2_000


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


def imported(owner):
    """What there is of a person's conversations, in the shape of `exports.expected`. A copy is one of the row that its
    text says, in the conversation that its branch departs from."""
    rows = {}
    told = Message.objects.filter(owner=owner, thread__kind="web").order_by("id")
    fields = ("thread__title", "role", "text", "created", "copied_from__text", "copied_from__thread__title")
    for title, role, words, created, copied, main in told.values_list(*fields):
        assert (copied, main) in ((None, None), (words, title.partition(" · ")[0]))
        rows.setdefault(title, []).append((role, words, created, main is not None))
    threads = conversations_of(owner).values_list(
        "title", "created", "updated", "copied_from__thread__title", "copied_from__text"
    )
    return {
        title: (created, updated, (main, departs) if main else None, rows.pop(title))
        for title, created, updated, main, departs in threads
    }


@pytest.mark.timeout(300)  # some twenty seconds on a machine that does nothing else
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("format", FORMATS)
def test_a_large_export_is_imported_whole_and_once(bring, alice, tmp_path, format):
    make, count = FORMATS[format], CONVERSATIONS
    whole = [make(number) for number in range(count)]
    damaged = [b'{"title": "cut", "mapping": {', {"title": "no messages", "uuid": "x"}, b'{"title": nonsense}']
    file = exports.write_zip(
        tmp_path / "export.zip", [*whole[:300], damaged[0]], [damaged[1], *whole[300:], damaged[2]], user_json="{}"
    )
    out, err = bring(file)
    truth = {title: one for number in range(count) for title, one in exports.expected(format, number).items()}
    # As the format counts: what Claude calls a message may be several rows.
    own = sum(len(one.get("chat_messages", one.get("mapping", ()))) for one in whole)
    own -= 0 if format == "claude" else 2 * count  # the root, and what the system was told unseen
    branches = len(truth) - count
    assert out.startswith(f"Imported {own:,} messages: {count:,} new conversations, 0 that grew, 0 unchanged, ")
    assert f"{branches} branches. 0 messages already there, 3 left out." in out
    assert [line.partition(":")[0] for line in err.splitlines()] == [
        "FILE, conversations-000.json, entry 301",
        "FILE, conversations-001.json, entry 1 (“no messages”)",
        f"FILE, conversations-001.json, entry {count - 300 + 2:,}",
    ]
    assert imported(alice) == truth
    calls = ToolCall.objects.filter(owner=alice, message__copied_from__isnull=True).select_related("result")
    assert sorted(int(call.result.text) for call in calls) == list(range(0, count, 4))

    before = (Message.objects.count(), Thread.objects.count(), ToolCall.objects.count())
    out, _err = bring(file)
    assert f"Imported 0 messages: 0 new conversations, 0 that grew, {count:,} unchanged." in out
    assert (Message.objects.count(), Thread.objects.count(), ToolCall.objects.count()) == before


def test_new_conversations_take_few_statements(bring, alice, tmp_path):
    """A thread, its generation, whence it comes, its messages; a branch the same, whatever it copies."""
    file = exports.write_json(tmp_path / "conversations.json", [*map(exports.chatgpt_conversation, range(24))])
    with CaptureQueriesContext(connection) as captured:
        bring(file)
    statements = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
    assert conversations_of(alice).count() == 32
    assert len(statements) <= 160
    assert not [sql for sql in statements if "FOR NO KEY UPDATE" in sql]


def user(text, minute=0, **more):
    return exports.message("user", text, at=exports.time_of(0, minute), **more)


def answer(text, minute=1, **more):
    return exports.message("assistant", text, at=exports.time_of(0, minute), **more)


@pytest.fixture
def bring_one(bring, tmp_path):
    """Imports one ChatGPT conversation of nodes {id: (parent, message)}."""

    def call(nodes, current, **more):
        return bring(
            exports.write_json(tmp_path / "conversations.json", [exports.chatgpt("c", nodes, current, **more)])
        )

    return call


def texts(thread):
    return [text for _role, text in said(thread)]


QUESTION = {"q": (None, user("q"))}
TWO_ANSWERS = {**QUESTION, "a": ("q", answer("a")), "b": ("q", answer("b", 2))}


def test_the_way_to_the_present_message_is_the_conversation_and_other_ends_are_branches(bring_one, alice):
    nodes = {**TWO_ANSWERS, "a2": ("a", user("a2", 3)), "a3": ("a2", answer("a3", 4)), "b2": ("b", user("b2", 5))}
    out, _err = bring_one(nodes, "b2")
    assert "Imported 6 messages: 1 new conversation, 0 that grew, 0 unchanged, 1 branch." in out
    main, branch = conversations_of(alice)
    assert texts(main) == ["q", "b", "b2"]
    assert texts(branch) == ["q", "a", "a2", "a3"]
    assert branch.copied_from == Message.objects.get(thread=main, text="q")
    copies = Message.objects.filter(thread=branch, copied_from__isnull=False)
    assert [(row.text, row.copied_from.thread, row.wire) for row in copies] == [
        ("q", main, row.copied_from.wire) for row in copies
    ]
    assert (branch.created, branch.updated) == (exports.time_of(0, 1), exports.time_of(0, 4))
    assert Generation.objects.get(thread=branch).started == exports.time_of(0)


def test_a_branch_of_a_branch_departs_from_the_branch(bring_one, alice):
    nodes = {**TWO_ANSWERS, "a2": ("a", user("a2", 3)), "x": ("a2", answer("x", 4)), "y": ("a2", answer("y", 5))}
    bring_one(nodes, "b")
    _main, first, second = conversations_of(alice)
    assert texts(first) == ["q", "a", "a2", "x"] and texts(second) == ["q", "a", "a2", "y"]
    assert second.copied_from.thread == first
    assert [thread.title for thread in (first, second)] == ["A title · branch 1", "A title · branch 2"]


def test_a_conversation_of_two_beginnings_is_two_conversations(bring_one, alice):
    nodes = {"p": (None, user("p")), **QUESTION, "a": ("q", answer("a"))}
    bring_one(nodes, "a")
    assert [texts(thread) for thread in conversations_of(alice)] == [["q", "a"], ["p"]]
    out, _err = bring_one(nodes, "a")
    assert "Imported 0 messages" in out


CALLED = {**QUESTION, "call": ("q", exports.call("python", "1 + 1")), "r": ("call", exports.output("python", "2"))}


def test_calls_keep_their_cards_and_every_call_has_one_result_on_the_wire(bring_one, alice):
    bring_one({**CALLED, "a": ("r", answer("Two."))}, "a")
    [thread] = conversations_of(alice)
    rows = list(Message.objects.filter(thread=thread).order_by("id"))
    [asked] = json.loads(rows[1].wire)
    [result] = json.loads(rows[2].wire)
    assert (asked["type"], asked["name"], asked["input"]) == ("tool_use", "python", {"code": "1 + 1"})
    assert (result["type"], result["tool_use_id"]) == ("tool_result", asked["id"])
    assert result["content"] == [{"type": "text", "text": "2"}]
    views = message_views(thread)
    [card] = views[1]["tool_calls"]
    assert (card["tool"], card["arguments"], card["status"], card["result"]["text"]) == (
        "python",
        {"code": "1 + 1"},
        "done",
        "2",
    )
    assert "1 + 1" in rows[1].search_text


def test_a_branch_in_the_middle_of_a_call_takes_the_call_along(bring_one, alice):
    nodes = {
        **CALLED,
        "a": ("r", answer("Two.")),
        "r2": ("call", exports.output("python", "3")),
        "b": ("call", answer("No.")),
    }
    bring_one(nodes, "a")
    main, other_result, no_result = conversations_of(alice)
    assert texts(main) == ["q", "", "2", "Two."]
    assert texts(other_result) == ["q", "", "3"]
    assert texts(no_result) == ["q", "", "(The export holds no result of this call.)", "No."]
    for thread in (other_result, no_result):
        [call] = ToolCall.objects.filter(thread=thread)
        assert call.result.thread == thread
        assert call.message.copied_from.thread == main
    assert Message.objects.filter(thread__in=[main, other_result, no_result], copied_from=None).count() == 7


def test_a_branch_shows_the_cards_of_what_it_copies(bring_one, alice):
    bring_one({**CALLED, "a": ("r", answer("Two.")), "b": ("r", answer("2!"))}, "a")
    main, branch = conversations_of(alice)
    original, copy = ToolCall.objects.get(thread=main), ToolCall.objects.get(thread=branch)
    assert copy.result.copied_from == original.result
    assert (copy.tool, copy.arguments, copy.status) == (original.tool, original.arguments, original.status)


def test_thinking_is_for_the_reader_alone(bring_one, alice):
    thoughts = {"content_type": "thoughts", "thoughts": [{"summary": "", "content": "The moon."}]}
    bring_one({**QUESTION, "t": ("q", answer("", content=thoughts)), "a": ("t", answer("a"))}, "a")
    [thread] = conversations_of(alice)
    row = Message.objects.get(thread=thread, text="a")
    assert message_views(thread)[-1]["thinking"] == "The moon."
    assert "moon" not in row.wire
    bring_one({**QUESTION, "t": ("q", answer("", content=thoughts))}, "t", conversation_id="d", id="d")
    alone = Message.objects.get(meta__thinking="The moon.", text="")
    assert alone.wire is None


def test_an_archived_conversation_is_archived(bring_one, alice):
    bring_one(TWO_ANSWERS, "a", is_archived=True)
    assert [thread.status for thread in conversations_of(alice)] == ["archived", "archived"]


def test_a_newer_export_continues_the_conversation_and_its_branches(bring_one, alice):
    bring_one(TWO_ANSWERS, "a")
    nodes = {**TWO_ANSWERS, "a2": ("a", user("a2", 5)), "b2": ("b", user("b2", 6)), "b3": ("b2", answer("b3", 7))}
    out, _err = bring_one(nodes, "b3")
    assert "Imported 3 messages: 0 new conversations, 1 that grew, 0 unchanged. 3 messages already there" in out
    main, branch = conversations_of(alice)
    assert texts(main) == ["q", "a", "a2"] and texts(branch) == ["q", "b", "b2", "b3"]
    assert (main.updated, branch.updated) == (exports.time_of(0, 5), exports.time_of(0, 7))
    out, _err = bring_one(nodes, "b3")
    assert "Imported 0 messages" in out


def test_a_newer_export_with_an_edited_question_adds_a_branch(bring_one, alice):
    nodes = {**QUESTION, "a": ("q", answer("a")), "q2": ("a", user("q2", 2)), "a2": ("q2", answer("a2", 3))}
    bring_one(nodes, "a2")
    edited = {**nodes, "e": ("a", user("edited", 4)), "f": ("e", answer("f", 5))}
    out, _err = bring_one(edited, "f")
    assert "1 that grew, 0 unchanged, 1 branch" in out
    main, branch = conversations_of(alice)
    assert texts(main) == ["q", "a", "q2", "a2"] and texts(branch) == ["q", "a", "edited", "f"]


def test_a_result_that_comes_with_the_next_export_is_not_lost(bring_one, alice):
    bring_one({**QUESTION, "call": CALLED["call"]}, "call")
    bring_one({**CALLED, "a": ("r", answer("Two."))}, "a")
    [thread] = conversations_of(alice)
    assert texts(thread) == ["q", "", "(The export holds no result of this call.)", "", "2", "Two."]
    assert [call.result.text for call in ToolCall.objects.order_by("id")] == [texts(thread)[2], "2"]


def test_what_was_said_here_stays_before_what_comes_with_a_newer_export(bring_one, alice):
    bring_one({**QUESTION, "a": ("q", answer("a"))}, "a")
    [thread] = conversations_of(alice)
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        append(locked, live_generation(locked), "user", text="here", blocks=[text_block("here")])
    state = snapshot(thread)
    bring_one({**QUESTION, "a": ("q", answer("a")), **{"c": ("a", CALLED["call"][1]), "r": ("c", CALLED["r"][1])}}, "r")
    roles = [role for role, _text in said(thread)]
    assert roles == ["user", "assistant", "user", "event", "event", "assistant", "tool"]
    for event in TurnEvent.objects.filter(thread=thread).order_by("number").values("number", "kind", "body"):
        state = apply(state, event)
    assert state == snapshot(thread)
    assert state["messages"][-1]["tool_calls"][0]["result"]["text"] == "2"


def test_a_branch_from_what_was_rewound_here_is_imported_all_the_same(bring_one, alice):
    nodes = {**QUESTION, "a": ("q", answer("a")), "q2": ("a", user("q2", 2)), "a2": ("q2", answer("a2", 3))}
    bring_one(nodes, "a2")
    [thread] = conversations_of(alice)
    held = {"summary_before": "Before.", "standing": [{"text": "Be brief", "message_id": 1}]}
    Generation.objects.filter(thread=thread).update(**held)
    rewind(thread, Message.objects.get(thread=thread, text="q"), acting_user=alice)
    bring_one({**nodes, "b2": ("q2", answer("b2", 4))}, "b2")
    branch = conversations_of(alice).last()
    assert Generation.objects.filter(thread=branch).values(*held).get() == held
    assert texts(branch) == ["q", "a", "q2", "b2"]
    assert not Message.objects.filter(thread=branch, left_at_cut__isnull=False).exists()
    assert Message.objects.filter(thread=branch, copied_from__isnull=True).count() == 1


def test_a_branch_with_a_copied_opening_is_told_its_own_name(bring_one, alice):
    bring_one(TWO_ANSWERS, "a")
    main, branch = conversations_of(alice)
    assert not Message.objects.filter(thread=branch, role="event").exists()
    Generation.objects.filter(thread=main).update(opening='[{"type":"text","text":"The opening."}]')
    bring_one({**TWO_ANSWERS, "c": ("q", answer("c", 3))}, "c")
    third = conversations_of(alice).last()
    assert Generation.objects.get(thread=third).opening == '[{"type":"text","text":"The opening."}]'
    assert f"channel: {third.channel}" in Message.objects.get(thread=third, role="event").wire


def test_a_deleted_branch_comes_back_with_the_next_import_and_a_deleted_conversation_too(bring_one, alice):
    bring_one(TWO_ANSWERS, "a")
    main, branch = conversations_of(alice)
    erasing.erase_thread(branch)
    bring_one(TWO_ANSWERS, "a")
    main, branch = conversations_of(alice)
    assert texts(branch) == ["q", "b"]
    erasing.erase_thread(main)
    bring_one(TWO_ANSWERS, "a")
    assert sorted(texts(thread) for thread in conversations_of(alice)) == [["q", "a"], ["q", "b"]]
    out, _err = bring_one(TWO_ANSWERS, "a")
    assert "Imported 0 messages" in out


def test_a_conversation_at_work_is_left_out_whole(bring_one, alice):
    bring_one(TWO_ANSWERS, "a")
    main, _branch = conversations_of(alice)
    Thread.objects.filter(pk=main.pk).update(state="waiting")
    nodes = {**TWO_ANSWERS, "a2": ("a", user("a2")), "b2": ("b", user("b2"))}
    _out, err = bring_one(nodes, "b2")
    assert "(“A title”): It is at work in MaxClaw" in err
    assert Message.objects.filter(text="b2").count() == 0
    Thread.objects.filter(pk=main.pk).update(state="idle")
    bring_one(nodes, "b2")
    assert [texts(thread)[-1] for thread in conversations_of(alice)] == ["a2", "b2"]


def test_a_dry_run_says_the_same_and_stores_nothing(bring, alice, tmp_path):
    file = exports.write_json(tmp_path / "conversations.json", [exports.chatgpt_conversation(12)])
    out, _err = bring(file, dry_run=True)
    assert out.startswith("Would import 7 messages: 1 new conversation, 0 that grew, 0 unchanged, 1 branch.")
    assert not conversations_of(alice).exists()


def test_two_people_have_a_conversation_each(bring, alice, bob, tmp_path):
    file = exports.write_json(tmp_path / "conversations.json", [exports.claude_conversation(0)])
    bring(file)
    out, _err = bring(file, user="bob")
    assert "1 new conversation" in out
    assert set(ImportedConversation.objects.values_list("owner__username", "format")) == {
        ("alice", "claude"),
        ("bob", "claude"),
    }


def test_an_empty_conversation_is_counted_and_not_reported(bring, alice, tmp_path):
    file = exports.write_json(tmp_path / "c.json", [exports.claude("e", [], title=""), exports.claude_conversation(1)])
    out, err = bring(file)
    assert "1 new conversation, 0 that grew, 0 unchanged, 1 without messages." in out
    assert err == ""


def test_a_single_conversation_and_a_list_under_a_key_are_read_too(bring, alice, tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(exports.chatgpt_conversation(1), indent=2))
    (tmp_path / "keyed.json").write_text(json.dumps({"conversations": [exports.claude_conversation(2)]}))
    bring(tmp_path / "one.json")
    bring(tmp_path / "keyed.json")
    assert [thread.title for thread in conversations_of(alice)] == ["Talk 1", "Talk 2"]


def test_a_large_history_is_dealt_into_generations_and_no_call_is_parted_from_its_result(bring_one, alice):
    nodes, above = {}, None
    for number in range(120):
        for name, one in (
            (f"q{number}", user("lorem ipsum " * 100)),
            (f"c{number}", exports.call("python", "x" * 500)),
            (f"r{number}", exports.output("python", "dolor sit " * 150)),
            (f"a{number}", answer("amet " * 100)),
        ):
            nodes[name], above = (above, one), name
    bring_one(nodes, above)
    [thread] = conversations_of(alice)
    dealt = list(Generation.objects.filter(thread=thread).order_by("ordinal"))
    assert len(dealt) >= 2
    budget = get("emulator-main").context_budget
    for generation in dealt:
        rows = list(generation.messages.order_by("id"))
        assert rows[0].role == "user"
        asked = {row.tool_calls.get().call_id for row in rows if row.wire and '"tool_use"' in row.wire}
        assert asked == {row.tool_call_id for row in rows if row.role == "tool"}
        assert sum(estimate_tokens(row.wire) for row in rows) <= budget / 2


def test_an_exchange_larger_than_a_generation_is_cut_between_rounds(bring_one, alice):
    nodes, above = {"q": (None, user("q"))}, "q"
    for number in range(150):
        nodes[f"c{number}"] = (above, exports.call("python", f"{number} " * 300))
        nodes[f"r{number}"] = (f"c{number}", exports.output("python", f"{number} " * 300))
        above = f"r{number}"
    bring_one(nodes, above)
    dealt = list(Generation.objects.filter(thread__kind="web").order_by("ordinal"))
    assert len(dealt) >= 2
    for generation in dealt:
        rows = list(generation.messages.exclude(role="user").order_by("id"))
        assert [row.role for row in rows] == ["assistant", "tool"] * (len(rows) // 2)


def test_a_huge_result_is_kept_whole_and_sent_in_part(bring_one, alice):
    output = "word " * 200_000
    bring_one({**CALLED, "r": ("call", exports.output("python", output)), "a": ("r", answer("a"))}, "a")
    [thread] = conversations_of(alice)
    row = Message.objects.get(thread=thread, role="tool")
    assert row.text == output.strip("\n")
    assert f"the whole result is message m:{row.pk}" in row.wire
    model = get("emulator-main")
    assert estimate_tokens(row.wire, model) <= model.context_budget * 0.4 + 50
    assert list(Message.objects.filter(thread=thread).order_by("id").values_list("role", flat=True)) == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("format", FORMATS)
def test_imported_branches_and_tool_calls_are_continued_by_a_turn(bring, alice, tmp_path, emulator, format):
    bring(exports.write_json(tmp_path / "conversations.json", [FORMATS[format](12)]))
    threads = list(conversations_of(alice))
    assert len(threads) == 2

    async def scenario():
        async with running_world(emulator) as world:
            return [await world.ask(thread, "Go on.") for thread in threads]

    emulator.answer(text("On we go."), times=-1)
    for rows in async_to_sync(scenario)():
        assert [row.text for row in rows[-2:]] == ["Go on.", "On we go."]
    for thread in threads:
        assert verify_thread(thread).proved == 1


@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_bring_everything_once(alice, tmp_path):
    conversations = [exports.chatgpt_conversation(number) for number in range(0, 60, 3)]
    file = exports.write_json(tmp_path / "conversations.json", conversations)
    import_at_once(file)
    assert conversations_of(alice).count() == 40
    for number, conversation in enumerate(conversations):
        more = {"parent": conversation["current_node"], "message": user(f"More {number}"), "children": []}
        conversation["mapping"]["more"], conversation["current_node"] = more, "more"
    exports.write_json(file, conversations)
    import_at_once(file)
    assert conversations_of(alice).count() == 40
    own = Message.objects.filter(owner=alice, copied_from__isnull=True, role="user")
    assert own.count() == 60
    assert Counter(own.values_list("text", flat=True)).most_common(1)[0][1] == 1


def import_at_once(file):
    failures = []

    def work():
        try:
            call_command("import_conversations", str(file), user="alice", stdout=io.StringIO())
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    imports = [threading.Thread(target=work) for _number in range(3)]
    for each in imports:
        each.start()
    for each in imports:
        each.join()
    assert failures == []


def test_nothing_to_import_is_an_error(bring, tmp_path):
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(CommandError, match="No message was found"):
        bring(tmp_path / "empty.json")
