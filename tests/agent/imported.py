"""Lines of conversations that were held elsewhere, and what became of them."""

from datetime import UTC, datetime, timedelta

from threads.models import Message, Thread

START = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def line(number, role="user", words=None, conversation="c1", **more):
    """The `number`-th line of a conversation, a minute after the one before."""
    created = (START + timedelta(minutes=number)).isoformat()
    return {"conversation": conversation, "role": role, "text": words or f"Words {number}", "created": created, **more}


def exchange(number, **more):
    return [line(2 * number, **more), line(2 * number + 1, role="assistant", **more)]


def only_thread(owner):
    return Thread.objects.get(owner=owner, kind="web")


def texts(thread):
    return list(Message.objects.filter(thread=thread).order_by("id").values_list("text", flat=True))
