"""What memory does every minute."""

from datetime import datetime

from django_q.tasks import async_task

from agent.ticking import every_minute
from llm import embedding
from memory import embedding_work


@every_minute("embed what is missing")
def embed_what_is_missing(_intended: datetime) -> None:
    """Words that no settled turn announced, such as imported ones, or that a failing backend left out."""
    if embedding_work.pending_threads(embedding.configured(), limit=1):
        async_task("memory.tasks.catch_up")
