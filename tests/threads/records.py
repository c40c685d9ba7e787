"""Small records for tests: threads, rows, and whole exchanges, written as the product writes them."""

from typing import Any

from django.db import transaction

from llm.wire import canonical
from threads import transcript
from threads.lifecycle import create_thread
from threads.models import Generation, Message, Thread


def thread_of(owner, **options: Any) -> Thread:
    return create_thread(owner, **options)


def say(thread: Thread, role: str, text: str = "words", **options: Any) -> Message:
    """Append one row with a text block (or `blocks`) in a transaction of its own."""
    if role != Message.Role.TOOL and not {"blocks", "wire"} & options.keys():
        options["blocks"] = [transcript.text_block(text)]
    with transaction.atomic():
        locked = transcript.lock_thread(thread.pk)
        return transcript.append(locked, transcript.live_generation(locked), role, text=text, **options)


def call_tool(thread: Thread, call_id: str = "toolu_1", arguments: Any = None, text: str = "") -> Message:
    """An assistant row that calls a tool."""
    blocks = [transcript.text_block(text)] if text else []
    blocks.append({"type": "tool_use", "id": call_id, "name": "look", "input": arguments or {}})
    return say(thread, Message.Role.ASSISTANT, text, wire=canonical(blocks), model="emulator-main")


def give_result(thread: Thread, call_id: str = "toolu_1", text: str = "found", **options: Any) -> Message:
    """The row that answers it."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return say(thread, Message.Role.TOOL, text, blocks=[block], tool_call_id=call_id, **options)


def exchange(thread: Thread, question: str = "question", answer: str = "answer") -> tuple[Message, Message]:
    return (
        say(thread, Message.Role.USER, question),
        say(thread, Message.Role.ASSISTANT, answer, model="emulator-main"),
    )


def live(thread: Thread) -> Generation:
    return transcript.live_generation(thread)


def copied(message: Message, thread: Thread) -> Message:
    """A live row of a thread that is a copy of a message."""
    row = Message.objects.get(pk=message.pk)
    row.left_at_cut, row.left_because = None, ""
    row.pk, row.copied_from_id, row.thread, row.generation = None, message.pk, thread, live(thread)
    row.save(force_insert=True)
    return row
