"""Exports as ChatGPT and Claude write them, made by rule: every number gives the same conversation each time."""

import json
import zipfile
from datetime import UTC, datetime, timedelta

START = datetime(2024, 3, 1, 8, 0, tzinfo=UTC)
ROOT_PARENT = "00000000-0000-4000-8000-000000000000"


def time_of(number, minute=0):
    return START + timedelta(hours=number, minutes=minute)


def uuid(*numbers):
    return f"{numbers[0]:08x}-0000-4000-8000-" + "".join(f"{number:06x}" for number in (*numbers[1:], 0, 0)[:2])


# ChatGPT


def message(role, text="", *, at=None, content=None, **more):
    """A message as it stands in a node; `more` are its further keys."""
    author = {"role": role, "name": more.pop("name", None), "metadata": {}}
    return {
        "author": author,
        "create_time": None if at is None else at.timestamp(),
        "update_time": None,
        "content": content or {"content_type": "text", "parts": [text]},
        "status": "finished_successfully",
        "end_turn": None,
        "weight": 1.0,
        "metadata": more.pop("metadata", {}),
        "recipient": more.pop("recipient", "all"),
        **more,
    }


def chatgpt(source, nodes, current, *, title="A title", at=START, **more):
    """A conversation of nodes {id: (parent, message)}."""
    mapping = {
        node_id: {
            "id": node_id,
            "message": None if said is None else {"id": node_id, **said},
            "parent": parent,
            "children": [child for child, (above, _said) in nodes.items() if above == node_id],
        }
        for node_id, (parent, said) in nodes.items()
    }
    return {
        "title": title,
        "create_time": at.timestamp(),
        "update_time": at.timestamp() + 60,
        "mapping": mapping,
        "moderation_results": [],
        "current_node": current,
        "plugin_ids": None,
        "conversation_id": source,
        "id": source,
        "is_archived": False,
        **more,
    }


def call(tool, arguments, *, at=None):
    content = {"content_type": "code", "language": "unknown", "text": arguments}
    return message("assistant", content=content, at=at, recipient=tool)


def output(tool, text, *, at=None):
    return message("tool", content={"content_type": "execution_output", "text": text}, at=at, name=tool)


def chatgpt_conversation(number):
    """Conversation `number`: two exchanges; every third has an answer asked for again, every fourth calls a tool."""

    def node(place):
        return uuid(number, place)

    def said(role, text, minute):
        return message(
            role, text, at=time_of(number, minute), metadata={"model_slug": "gpt-5"} if role != "user" else {}
        )

    hidden = message("system", "", metadata={"is_visually_hidden_from_conversation": True})
    nodes = {
        node(0): (None, None),
        node(1): (node(0), hidden),
        node(2): (node(1), said("user", f"Question {number}", 0)),
    }
    above = node(2)
    if number % 4 == 0:
        nodes[node(3)] = (above, call("python", f"print({number})", at=time_of(number, 1)))
        nodes[node(4)] = (node(3), output("python", f"{number}", at=time_of(number, 2)))
        above = node(4)
    if number % 3 == 0:
        nodes[node(5)] = (above, said("assistant", f"First answer {number}", 3))
    nodes[node(6)] = (above, said("assistant", f"Answer {number}", 4))
    nodes[node(7)] = (node(6), said("user", f"Thanks {number}", 5))
    nodes[node(8)] = (node(7), said("assistant", f"Welcome {number}", 6))
    return chatgpt(node(0), nodes, node(8), title=f"Talk {number}", at=time_of(number))


# Claude


def block(kind, **fields):
    return {"start_timestamp": None, "stop_timestamp": None, "flags": None, "type": kind, **fields}


def claude_message(message_id, parent, sender, blocks, *, at, **more):
    return {
        "uuid": message_id,
        "text": "\n".join(one.get("text", "") for one in blocks),
        "content": blocks,
        "sender": sender,
        "created_at": at.isoformat().replace("+00:00", "Z"),
        "updated_at": at.isoformat().replace("+00:00", "Z"),
        "attachments": [],
        "files": [],
        **({"parent_message_uuid": parent} if parent else {}),
        **more,
    }


def claude(source, messages, *, title="A title", at=START, **more):
    return {
        "uuid": source,
        "name": title,
        "summary": "",
        "created_at": at.isoformat().replace("+00:00", "Z"),
        "updated_at": at.isoformat().replace("+00:00", "Z"),
        "account": {"uuid": uuid(0, 0)},
        "chat_messages": messages,
        **more,
    }


def claude_conversation(number):
    """The same conversation as `chatgpt_conversation(number)`, as Claude exports it."""

    def node(place):
        return uuid(number, place)

    def text(words):
        return block("text", text=words, citations=[])

    def answer(place, parent, blocks, minute):
        return claude_message(node(place), node(parent), "assistant", blocks, at=time_of(number, minute))

    first = claude_message(node(2), ROOT_PARENT, "human", [text(f"Question {number}")], at=time_of(number))
    called = []
    if number % 4 == 0:
        result = [{"type": "text", "text": f"{number}", "uuid": node(9)}]
        called = [
            block("thinking", thinking=f"Thought {number}", summaries=[]),
            block("tool_use", id=f"toolu_{number}", name="repl", input={"code": f"print({number})"}),
            block("tool_result", tool_use_id=f"toolu_{number}", name="repl", content=result, is_error=False),
        ]
    messages = [first]
    if number % 3 == 0:
        messages.append(answer(5, 2, [text(f"First answer {number}")], 3))
    messages.append(answer(6, 2, [*called, text(f"Answer {number}")], 4))
    thanks = claude_message(node(7), node(6), "human", [text(f"Thanks {number}")], at=time_of(number, 5))
    messages += [thanks, answer(8, 7, [text(f"Welcome {number}")], 6)]
    return claude(node(0), messages, title=f"Talk {number}", at=time_of(number))


# What comes of them


def expected(format, number):
    """What an import makes of conversation `number`: by title, when each conversation was begun and last changed, the
    row that it departs from, if it is a branch, and its rows: role, text, when they were said, whether they are
    copies."""
    # ChatGPT's nodes of a call are older than the answer, Claude's are blocks of it.
    asked, found = (1, 2) if format == "chatgpt" else (4, 4)
    called = [("assistant", "", asked), ("tool", f"{number}", found)] if number % 4 == 0 else []
    question, answer = ("user", f"Question {number}", 0), ("assistant", f"Answer {number}", 4)
    rows = [question, *called, answer, ("user", f"Thanks {number}", 5), ("assistant", f"Welcome {number}", 6)]
    conversations = {f"Talk {number}": (time_of(number), time_of(number, 6), None, _timed(number, rows, []))}
    if number % 3 == 0:
        shared = [question, *(called if format == "chatgpt" else [])]
        rows = _timed(number, [*shared, ("assistant", f"First answer {number}", 3)], shared)
        departs = (f"Talk {number}", shared[-1][1])
        conversations[f"Talk {number} · branch 1"] = (time_of(number, 3), time_of(number, 3), departs, rows)
    return conversations


def _timed(number, rows, copies):
    return [(role, text, time_of(number, minute), (role, text, minute) in copies) for role, text, minute in rows]


# Files


def write_json(path, conversations):
    """A conversations.json; bytes among the conversations are written as they are."""
    raw = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in conversations]
    path.write_bytes(b"[" + b", ".join(raw) + b"]")
    return path


def write_zip(path, *files, **others):
    """An archive: each of `files` is the conversations of one conversations file; `others` are further entries."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, conversations in enumerate(files):
            name = "conversations.json" if len(files) == 1 else f"conversations-{number:03}.json"
            raw = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in conversations]
            archive.writestr(name, b"[" + b", ".join(raw) + b"]")
        for name, text in others.items():
            archive.writestr(name.replace("_", "."), text)
    return path
