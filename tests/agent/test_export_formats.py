"""What is read of one conversation of an export."""

import json
from datetime import UTC, datetime

import pytest

from agent import import_chatgpt, import_claude
from agent.import_history import NO_RESULT, Damaged
from tests.agent import exports
from tests.agent.exports import block, call, chatgpt, claude, claude_message, message, output
from threads.models import Message

AT = exports.START


def chain(*said):
    """Nodes n0, n1, ... one after the other."""
    return {f"n{number}": (f"n{number - 1}" if number else None, one) for number, one in enumerate(said)}


def read_chatgpt(*said, **more):
    return import_chatgpt.parse(chatgpt("c", chain(*said), f"n{len(said) - 1}", **more))


def rows(history):
    return [
        (piece.role.value, piece.text)
        for node in history.nodes.values()
        for piece in ([node.answer] if node.answer else node.pieces)
    ]


def user(text="Hello", **more):
    return message("user", text, at=AT, **more)


def answer(text="Hi", **more):
    return message("assistant", text, at=AT, **more)


# ChatGPT


def test_system_and_hidden_messages_are_left_out_and_what_follows_stays_connected():
    history = read_chatgpt(
        None,
        message("system", "You are ChatGPT."),
        user("About me", metadata={"is_visually_hidden_from_conversation": True}),
        user(content={"content_type": "user_editable_context", "user_profile": "me"}),
        user(),
        answer(),
    )
    assert rows(history) == [("user", "Hello"), ("assistant", "Hi")]
    assert [node.parent for node in history.nodes.values()] == [None, "n4"]
    assert history.current == "n5"


def test_a_message_without_a_time_has_the_time_of_the_one_before():
    history = read_chatgpt(user(), message("assistant", "Hi"), message("user", "And?"))
    assert {node.created for node in history.nodes.values()} == {AT}


def test_a_call_and_its_results_become_one_call_with_one_result():
    history = read_chatgpt(
        user(), call("web.run", '{"q": "tides"}', at=AT), output("web.run", "one"), output("web.run", "two"), answer()
    )
    asked, result = history.nodes["n1"], history.nodes["n3"]
    [made] = asked.open_calls
    assert (made.tool, made.wire_name, made.arguments) == ("web.run", "web_run", {"q": "tides"})
    assert result.answer.answers == made.call_id
    assert result.answer.text == "one\n\ntwo"
    assert rows(history) == [("user", "Hello"), ("assistant", ""), ("tool", "one\n\ntwo"), ("assistant", "Hi")]
    assert history.nodes["n4"].parent == "n3"


@pytest.mark.parametrize(
    ("tool", "text", "arguments"),
    [
        ("python", "print(1)", {"code": "print(1)"}),
        ("browser", 'search("x")', {"input": 'search("x")'}),
        ("bio", "[1]", {"input": "[1]"}),
        ("dalle.text2im", '{"n": NaN, "big": 1e999}', {"n": "nan", "big": "inf"}),
        ("python", "", {}),
    ],
)
def test_arguments_are_always_an_object_that_json_takes(tool, text, arguments):
    history = read_chatgpt(user(), call(tool, text))
    assert history.nodes["n1"].open_calls[0].arguments == arguments


def test_a_tool_that_nobody_called_gets_a_call():
    history = read_chatgpt(user(), output("file_search", "found"), answer())
    asks, result = history.nodes["n1"].pieces
    assert history.nodes["n1"].answer is None
    assert (asks.calls[0].tool, asks.calls[0].arguments, result.answers) == ("file_search", {}, asks.calls[0].call_id)


def test_thinking_goes_with_the_answer_that_follows_and_stays_without_one():
    thoughts = message(
        "assistant", content={"content_type": "thoughts", "thoughts": [{"summary": "Tides", "content": "The moon."}]}
    )
    recap = message("assistant", content={"content_type": "reasoning_recap", "content": "Thought for 3s"})
    history = read_chatgpt(user(), thoughts, recap, answer())
    assert history.nodes["n3"].pieces[0].thinking == "Tides\n\nThe moon."
    assert rows(history) == [("user", "Hello"), ("assistant", "Hi")]
    history = read_chatgpt(user(), thoughts, recap, user("Well?"), answer())
    assert history.nodes["n1"].pieces[0].thinking == "Tides\n\nThe moon."
    assert history.nodes["n4"].pieces[0].thinking == ""


def test_pictures_sound_and_files_leave_a_note_with_their_name():
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://x", "metadata": None}
    spoken = [{"content_type": "audio_transcription", "text": "Spoken words"}, {"content_type": "audio_asset_pointer"}]
    content = {"content_type": "multimodal_text", "parts": [picture, "What is this?"]}
    attachments = [{"name": "cat.png", "mime_type": "image/png"}, {"name": "a.pdf", "mime_type": "application/pdf"}]
    history = read_chatgpt(
        user(content=content, metadata={"attachments": attachments}),
        message("user", content={"content_type": "multimodal_text", "parts": spoken}),
        message("user", content={"content_type": "multimodal_text", "parts": [picture]}),
    )
    assert [text for _role, text in rows(history)] == [
        "What is this?\n\n[Image: cat.png]\n\n[File: a.pdf]",
        "Spoken words\n\n[Audio]",
        "[Image]",
    ]


def test_citations_read_as_the_page_showed_them():
    text = "The moon pulls. \ue200cite\ue202turn0search1\ue201 Truly \ue200cite\ue202turn0search2\ue201."
    reference = {"matched_text": "\ue200cite\ue202turn0search1\ue201", "alt": "([NASA](https://nasa.gov))"}
    history = read_chatgpt(user(), answer(text, metadata={"content_references": [reference]}))
    assert rows(history)[1][1] == "The moon pulls. ([NASA](https://nasa.gov)) Truly ."


def test_kinds_of_content_that_nobody_knows_keep_their_words():
    kinds = [
        {"content_type": "tether_quote", "title": "T", "url": "https://u", "text": "Quoted", "domain": "u"},
        {"content_type": "tether_browsing_display", "result": "R", "summary": "S"},
        {"content_type": "system_error", "name": "Error", "text": "it broke"},
        {"content_type": "hologram", "text": "words"},
        {"content_type": "hologram"},
    ]
    history = read_chatgpt(user(), *(message("tool", content=one, name=f"t{n}") for n, one in enumerate(kinds)))
    results = [node.pieces[-1] for node in list(history.nodes.values())[1:]]
    assert [piece.text for piece in results] == [
        "T\n\nhttps://u\n\nQuoted",
        "S\n\nR",
        "Error\n\nit broke",
        "words",
        "[hologram]",
    ]
    assert [piece.is_error for piece in results] == [False, False, True, False, False]


def test_the_present_message_is_found_where_its_own_node_has_no_words():
    nodes = {**chain(user(), answer()), "empty": ("n1", message("assistant", ""))}
    assert import_chatgpt.parse(chatgpt("c", nodes, "empty")).current == "n1"
    assert import_chatgpt.parse(chatgpt("c", nodes, "gone")).current is None


def test_children_keep_their_order():
    nodes = {"q": (None, user()), "b": ("q", answer("second")), "a": ("q", answer("first"))}
    entry = chatgpt("c", nodes, "a")
    entry["mapping"]["q"]["children"] = ["a", "b"]
    assert list(import_chatgpt.parse(entry).nodes) == ["q", "a", "b"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"mapping": None}, "Its messages (“mapping”) are missing."),
        ({"id": None, "conversation_id": " "}, "Its id is missing."),
        ({"id": "x" * 151, "conversation_id": None}, "Its id has 151 characters."),
        ({"mapping": {"a": {"parent": "b", "message": None}, "b": {"parent": "a"}}}, "2 messages follow one another"),
        ({"mapping": {"a": 7}}, "Message a is no object: 7."),
        ({"mapping": {"a": {"message": {"content": {}}}}}, "Message a: It does not say who wrote it."),
        ({"mapping": {"a": {"message": {"author": {"role": "king"}, "content": {}}}}}, "Message a: The role 'king'"),
        ({"create_time": "?", "mapping": {"a": {"message": message("user", "x")}}}, "No time stands in it."),
    ],
)
def test_a_damaged_chatgpt_conversation_says_why(broken, why):
    with pytest.raises(Damaged) as caught:
        import_chatgpt.parse({**chatgpt("c", chain(user()), "n0"), **broken})
    assert str(caught.value).startswith(why)


def test_a_damaged_message_is_told_and_the_rest_is_read():
    history = read_chatgpt(user(), {"author": None, "content": {}}, answer())
    assert [str(why) for why in history.damaged] == ["Message n1: It does not say who wrote it."]
    assert rows(history) == [("user", "Hello"), ("assistant", "Hi")]
    assert history.nodes["n2"].parent == "n0"


# Claude


def said(number, sender, *blocks, parent=None, **more):
    return claude_message(f"m{number}", parent, sender, list(blocks), at=AT, **more)


def words(text):
    return block("text", text=text)


def use(call_id, name="web_search", **arguments):
    return block("tool_use", id=call_id, name=name, input=arguments)


def gave(call_id, content, name="web_search", **more):
    return block("tool_result", tool_use_id=call_id, name=name, content=content, **more)


def read_claude(*messages, **more):
    return import_claude.parse(claude("c", list(messages), **more))


def test_an_answer_with_tools_becomes_rounds():
    history = read_claude(
        said(1, "human", words("Look it up")),
        said(
            2,
            "assistant",
            block("thinking", thinking="Search first."),
            words("Looking."),
            use("t1", q="a"),
            use("t2", "Google Calendar:list", q="b"),
            gave("t2", [{"type": "text", "text": "two"}, {"type": "image"}], "Google Calendar:list", is_error=True),
            gave("t1", "one"),
            block("token_budget"),
            words("Found."),
            use("t3"),
        ),
    )
    pieces = history.nodes["m2"].pieces
    assert [(piece.role.value, piece.text, len(piece.calls)) for piece in pieces] == [
        ("assistant", "Looking.", 2),
        ("tool", "one", 0),
        ("tool", "two\n\n[Image]", 0),
        ("assistant", "Found.", 1),
        ("tool", NO_RESULT, 0),
    ]
    assert pieces[0].thinking == "Search first."
    assert [piece.answers for piece in pieces[1:3]] == [made.call_id for made in pieces[0].calls]
    assert [piece.is_error for piece in pieces[1:3]] == [False, True]
    assert pieces[0].calls[1].wire_name == "Google_Calendar_list"
    assert history.nodes["m2"].open_calls == ()


def test_old_exports_whose_tools_have_no_ids_are_paired_in_order():
    history = read_claude(said(1, "assistant", use(None, x=1), gave(None, "one"), use(None, x=2), gave(None, "two")))
    results = [piece.text for piece in history.nodes["m1"].pieces if piece.role == Message.Role.TOOL]
    assert results == ["one", "two"]


def test_a_result_that_nobody_asked_for_has_a_card():
    asks, result = read_claude(said(1, "assistant", gave("t9", "one", "repl"))).nodes["m1"].pieces
    assert (asks.calls[0].tool, result.text, result.answers) == ("repl", "one", asks.calls[0].call_id)


def test_attachments_keep_their_text_and_files_leave_a_note():
    attachments = [
        {"file_name": "a.txt", "extracted_content": "line 1\nline 2"},
        {"file_name": "", "extracted_content": "p"},
    ]
    files = [{"file_name": "cat.PNG", "file_uuid": "u1"}, {"file_name": "b.pdf"}]
    history = read_claude(
        said(
            1,
            "human",
            words("See"),
            attachments=attachments,
            files=files,
            files_v2=[{"file_name": "cat.PNG", "file_uuid": "u1"}],
        )
    )
    assert rows(history)[0][1] == (
        "See\n\n[Attachment: a.txt]\nline 1\nline 2\n\n[Attachment]\np\n\n[Image: cat.PNG]\n\n[File: b.pdf]"
    )


def test_the_plain_text_stands_in_where_there_are_no_blocks():
    history = read_claude({**said(1, "human"), "text": "Old words"}, {**said(2, "assistant"), "text": "Old answer"})
    assert rows(history) == [("user", "Old words"), ("assistant", "Old answer")]


def test_messages_without_parents_follow_one_another_and_empty_ones_are_passed_over():
    history = read_claude(said(1, "human", words("a")), said(2, "assistant"), said(3, "assistant", words("b")))
    assert [(node.id, node.parent) for node in history.nodes.values()] == [("m1", None), ("m3", "m1")]
    assert history.current == "m3"


def test_the_present_leaf_is_the_named_one_else_the_last_message():
    messages = [
        said(1, "human", words("q"), parent=exports.ROOT_PARENT),
        said(2, "assistant", words("a"), parent="m1"),
        said(3, "assistant", words("b"), parent="m1"),
    ]
    assert read_claude(*messages).current == "m3"
    assert read_claude(*messages, current_leaf_message_uuid="m2").current == "m2"


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"chat_messages": None}, "Its messages (“chat_messages”) are missing."),
        ({"uuid": ""}, "Its id is missing."),
        ({"chat_messages": [7]}, "Message 1 is no object: 7."),
        ({"chat_messages": [said(1, "king", words("x"))]}, "Message m1: The sender 'king' is unknown."),
        (
            {"chat_messages": [{**said(1, "human", words("x")), "created_at": "?"}], "created_at": None},
            "Message m1: No time stands in it.",
        ),
    ],
)
def test_a_damaged_claude_conversation_says_why(broken, why):
    with pytest.raises(Damaged) as caught:
        import_claude.parse({**claude("c", [said(1, "human", words("x"))]), **broken})
    assert str(caught.value) == why


def test_text_is_made_visible_whatever_stands_in_it():
    history = read_claude(
        said(1, "human", words("a\x00b\ud800c")), said(2, "assistant", use("t", k="\x00")), name="t\x00"
    )
    assert rows(history)[0][1] == "a␀b\\ud800c"
    assert history.nodes["m2"].pieces[0].calls[0].arguments == {"k": "␀"}
    json.dumps(history.title).encode()


# The day of these is shown in one time zone and not in the next.
ENDS_OF_THE_CALENDAR = (253_402_300_799, "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+10:00")


def test_times_are_read_as_they_are_written():
    assert import_claude.moment("2024-03-01T10:00:00+02:00") == datetime(2024, 3, 1, 8, tzinfo=UTC)
    assert import_claude.moment(1709280000.5) == datetime(2024, 3, 1, 8, 0, 0, 500_000, tzinfo=UTC)
    for nonsense in (None, True, -1, 1e300, "soon", [], float("nan"), *ENDS_OF_THE_CALENDAR):
        assert import_claude.moment(nonsense) is None
