"""Entry points of the background queue: a few lines each."""

from asgiref.sync import async_to_sync

from memory import embedding_work, fact_embedding, steward
from memory.signals import rested
from threads.signals import SettledReason


def came_to_rest(thread_id: int, reason: str) -> int:
    """Tell who listens, then embed what is missing of one thread. Returns how many chunks were made."""
    rested.send_robust(sender=None, thread=thread_id, reason=SettledReason(reason))
    return embedding_work.embed_some(thread_id)


def catch_up() -> int:
    """Embed what is missing anywhere. Returns how many chunks were made."""
    return embedding_work.catch_up()


def embed_facts(owner_id: int | None = None) -> int:
    """Embed what facts lack, of one owner or of all. Returns how many got a vector."""
    return fact_embedding.embed_facts(owner_id)


def read_for_memory(thorough: bool = False) -> int:
    """Read what is due. Returns how many pages were read."""
    return async_to_sync(steward.drain)(thorough=thorough)
