"""Messages and events made straight through the records, for tests that need no model."""

from django.db import transaction

from agent.events import Event, emit_all
from agent.projection import message_view
from threads.models import Message, Thread
from threads.transcript import append, live_generation, lock_thread, text_block


def tell(thread: Thread, *events: Event) -> int:
    """Store events as a turn does, under the thread's lock; returns the last number."""
    with transaction.atomic():
        lock_thread(thread.pk)
        return emit_all(thread.pk, thread.owner_id, events)


def say(thread: Thread, text: str, role: str = Message.Role.USER) -> Message:
    """Append one message and tell of it."""
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        generation = live_generation(locked)
        message = append(locked, generation, role, text=text, blocks=[text_block(text)])
        emit_all(locked.pk, locked.owner_id, [("message", {"message": message_view(message, generation.ordinal)})])
        return message


def say_many(thread: Thread, count: int) -> list[Message]:
    """Append `count` short messages, without events."""
    with transaction.atomic():
        locked = lock_thread(thread.pk)
        generation = live_generation(locked)
        return [
            append(
                locked, generation, Message.Role.USER, text=f"message {index}", blocks=[text_block(f"message {index}")]
            )
            for index in range(count)
        ]
