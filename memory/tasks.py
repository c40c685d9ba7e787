"""Entry points of the background queue: a few lines each."""

from memory import embedding_work


def embed_thread(thread_id: int) -> int:
    """Embed what is missing of one thread. Returns how many chunks were made."""
    return embedding_work.embed_some(thread_id)


def catch_up() -> int:
    """Embed what is missing anywhere. Returns how many chunks were made."""
    return embedding_work.catch_up()
