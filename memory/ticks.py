"""What memory does every minute."""

from datetime import datetime

from django_q.tasks import async_task

from agent.ticking import every_minute
from llm import embedding
from maxclaw import clock
from memory import embedding_work, fact_embedding, steward_work


@every_minute("embed what is missing")
def embed_what_is_missing(_intended: datetime) -> None:
    """Words that no settled turn announced, such as imported ones, or that a failing backend left out."""
    backend = embedding.configured()
    if embedding_work.pending_threads(backend, limit=1):
        async_task("memory.tasks.catch_up")
    if fact_embedding.pending_facts(backend).exists():
        async_task("memory.tasks.embed_facts")


@every_minute("read conversations for memory")
def read_conversations_for_memory(intended: datetime) -> None:
    """Conversations at rest and generations that ended are read by the steward; once an hour every row is looked at."""
    now = clock.now()
    steward_work.sweep(now)
    thorough = intended.minute == 0
    if steward_work.due_threads(now, 1, thorough=thorough):
        async_task("memory.tasks.read_for_memory", thorough)
