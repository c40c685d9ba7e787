"""What turns are measured with: a count of SQL statements, the time spent waiting for the model, the moment at which a
turn has settled. None of it changes what a turn does."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.backends.signals import connection_created

from agent.streaming import DeltaWriter
from agent.turn import Turn
from llm import provider
from llm.catalog import Model
from llm.events import StreamEvent
from threads.signals import thread_settled

# Statements that only mark transactions: the driver sends most of them on its own, where nobody can count them.
TRANSACTION_WORDS = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET TRANSACTION")


class Statement(NamedTuple):
    """One statement as it was executed, and how many rows it returned or changed."""

    text: str
    parameters: Any
    rows: int


class StatementCounter:
    """Counts SQL statements of every thread that connects from now on until `stop`, without those of delta batches."""

    def __init__(self) -> None:
        self.count = 0
        self.kept: list[Statement] | None = None
        self._lock = threading.Lock()
        self._apart = threading.local()
        self._watched: list[Any] = []
        connection_created.connect(self._watch, dispatch_uid="benchmark statements")
        self._store = store = DeltaWriter._store
        counter = self

        def store_apart(writer: DeltaWriter, text: str, thinking: str) -> None:
            counter._apart.deltas = True
            try:
                store(writer, text, thinking)
            finally:
                counter._apart.deltas = False

        DeltaWriter._store = store_apart  # type: ignore[method-assign, assignment]  # measured apart, not changed

    def stop(self) -> None:
        """Count no more, and leave everything as it was."""
        connection_created.disconnect(self._watch, dispatch_uid="benchmark statements")
        DeltaWriter._store = self._store  # type: ignore[method-assign]
        for connection in self._watched:
            connection.execute_wrappers.remove(self._execute)

    def _watch(self, connection: Any, **_signal: Any) -> None:
        if self._execute not in connection.execute_wrappers:
            connection.execute_wrappers.append(self._execute)
            self._watched.append(connection)

    def _execute(self, execute: Any, statement: Any, parameters: Any, many: bool, context: Any) -> Any:
        text = str(statement).lstrip()
        result = execute(statement, parameters, many, context)
        if not getattr(self._apart, "deltas", False) and not text.upper().startswith(TRANSACTION_WORDS):
            with self._lock:
                self.count += 1
                if self.kept is not None:
                    self.kept.append(Statement(text, parameters, context["cursor"].rowcount))
        return result


@dataclass
class ModelTime:
    """What one turn waited for its model, in seconds, and the last request that it made."""

    seconds: float = 0.0
    body: bytes = b""


class Waits:
    """Tells, by thread, how long turns wait for the model's bytes and when they have settled."""

    def __init__(self) -> None:
        self._model: dict[int, ModelTime] = {}
        self._settled: dict[int, asyncio.Future[float]] = {}
        self._thread_id: ContextVar[int] = ContextVar("thread of the turn", default=0)
        self._time_the_model()
        thread_settled.connect(self._on_settled, dispatch_uid="benchmark settled")

    def expect(self, thread_id: int) -> "asyncio.Future[float]":
        """A future that gets the moment (time.perf_counter) at which the thread's next turn has settled."""
        self._model[thread_id] = ModelTime()
        future = asyncio.get_running_loop().create_future()
        self._settled[thread_id] = future
        return future

    def model_time(self, thread_id: int) -> ModelTime:
        return self._model[thread_id]

    def _on_settled(self, thread: int, **_signal: Any) -> None:
        moment = time.perf_counter()
        future = self._settled.pop(thread, None)
        if future is not None:
            future.get_loop().call_soon_threadsafe(future.set_result, moment)

    def _time_the_model(self) -> None:
        ask, stream, waits = Turn._ask, provider.stream, self

        async def ask_as(turn: Turn, *arguments: Any) -> Any:
            waits._thread_id.set(turn.holding.thread_id)
            return await ask(turn, *arguments)

        async def timed(model: Model, body: bytes, betas: Sequence[str] = ()) -> AsyncGenerator[StreamEvent, None]:
            spent = waits._model.setdefault(waits._thread_id.get(), ModelTime())
            spent.body = body
            async with aclosing(stream(model, body, betas)) as events:
                while True:
                    began = time.perf_counter()
                    try:
                        event = await anext(events)
                    except StopAsyncIteration:
                        return
                    finally:
                        spent.seconds += time.perf_counter() - began
                    yield event

        Turn._ask = ask_as  # type: ignore[method-assign, assignment]  # timed, not changed
        provider.stream = timed  # timed, not changed
