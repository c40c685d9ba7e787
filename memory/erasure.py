"""How what memory keeps of a person goes. Vectors are no words of anybody's, so they are not exported."""

from accounts.models import User
from memory.models import EmbeddedThread, MessageChunk
from threads.models import Thread


def erase_thread(thread: Thread) -> None:
    MessageChunk.objects.filter(thread=thread).delete()
    EmbeddedThread.objects.filter(thread=thread).delete()


def erase_user(user: User) -> None:
    MessageChunk.objects.filter(owner=user).delete()
    EmbeddedThread.objects.filter(owner=user).delete()
