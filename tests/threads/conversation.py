"""A conversation without a turn's loop: rows and model calls as a turn writes them, from the functions that it uses.

Its `roots` are what the context must hold: the ids of its rows, a copy counted as what it is a copy of.
"""

import uuid
from typing import Any

from django.db import transaction
from django.db.models import Max

from agent.leases import Holding
from agent.models import Level
from agent.preparation import Step, compose, present, stop_asked
from llm import catalog
from llm.ledger import close_call
from llm.models import ModelCall
from llm.prices import Usage
from llm.wire import canonical
from maxclaw import clock
from maxclaw.text import visible, visible_json
from threads.copying import fork, rewind, undo_rewind
from threads.lifecycle import LifecycleRefused, create_thread
from threads.models import Generation, Message
from threads.request import rows_of_call
from threads.transcript import append, finish_answer, live_generation, lock_thread, text_block

LATEST = 2**63 - 1
MODELS = ("emulator-main", "emulator-light-all")


class Conversation:
    def __init__(self, owner, thread=None, roots=()):
        self.owner = owner
        self.thread = thread or create_thread(owner)
        self.roots: list[int] = list(roots)
        # What the context held before each rewind.
        self.before_rewinds: list[list[int]] = []
        self.calls = 0

    def say(self, text: str, answer: list[dict[str, Any]], model_name: str) -> None:
        """The user speaks, a model answers with text and thinking."""
        self._append(Message.Role.USER, text=text, blocks=[text_block(text or "…")])
        self._ask(model_name, answer)

    def work(self, text: str, inputs: list[Any], answer: list[dict[str, Any]], model_name: str) -> None:
        """The user speaks, a model calls tools (the last one is interrupted), gets results and answers."""
        self._append(Message.Role.USER, text=text, blocks=[text_block(text or "…")])
        calls = [
            {"type": "tool_use", "id": f"toolu_{self.calls}_{number}", "name": "look", "input": {"value": value}}
            for number, value in enumerate(inputs)
        ]
        self._ask(model_name, [*answer, *calls])
        for call in calls:
            interrupted = call is calls[-1]
            result = {
                "type": "tool_result",
                "tool_use_id": call["id"],
                "content": "It may have run." if interrupted else text or "…",
            }
            self._append(Message.Role.TOOL, text=text, blocks=[result], tool_call_id=call["id"], is_error=interrupted)
        self._ask(model_name, answer)

    def interrupt(self, text: str, model_name: str) -> None:
        """A request whose answer never came: its row is not sent."""
        self._append(Message.Role.USER, text=text, blocks=[text_block(text or "…")])
        self._ask(model_name, None)

    def event(self, text: str) -> None:
        self._append(Message.Role.EVENT, text=text, blocks=[text_block(text or "…")])

    def prune(self, number: int) -> None:
        """Whole exchanges from the start leave as cold, as far as the first that holds the given row."""
        with transaction.atomic():
            generation = live_generation(lock_thread(self.thread.pk))
            rows = rows_of_call(generation.pk, LATEST, generation.cut)
            starts = [index for index, row in enumerate(rows) if row.role == Message.Role.USER]
            if len(starts) < 2:
                return
            end = starts[1 + number % (len(starts) - 1)]
            generation.cut += 1
            generation.thinking_from = rows[-1].id + 1
            generation.save()
            gone = [row.id for row in rows[:end]]
            Message.objects.filter(pk__in=gone).update(left_at_cut=generation.cut, left_because="cold")
            self.roots = self.roots[end:]

    def drop_thinking(self) -> None:
        with transaction.atomic():
            generation = live_generation(lock_thread(self.thread.pk))
            generation.cut += 1
            generation.thinking_from = (Message.objects.aggregate(newest=Max("pk"))["newest"] or 0) + 1
            generation.save()

    def begin_generation(self) -> None:
        with transaction.atomic():
            lock_thread(self.thread.pk)
            generation = live_generation(self.thread)
            Generation.objects.filter(pk=generation.pk).update(ended=clock.now(), end_reason="threshold")
            Generation.objects.create(thread=self.thread, owner=self.owner, ordinal=generation.ordinal + 1)
            self.roots = []

    def rewind(self, number: int) -> None:
        """Rewind to some row of the context, or of an earlier generation, that nothing superseded."""
        standing = Message.objects.filter(thread=self.thread, left_at_cut__isnull=True, wire__isnull=False)
        choices = list(standing.order_by("pk"))
        if not choices:
            return
        target = choices[number % len(choices)]
        # The newest row of the same place: the copy in the live context, where there is one.
        newest = max(row.pk for row in choices if self._root(row) == self._root(target))
        before, expected = self.roots, self._held_up_to(Message.objects.get(pk=newest))
        rewinds = self._rewinds()
        try:
            rewind(self.thread, target, acting_user=self.owner)
        except LifecycleRefused:
            return
        # Where nothing stood behind the row, nothing was rewound; where an answer without words did, only that was.
        if self._rewinds() > rewinds:
            self.before_rewinds.append(before)
        self.roots = expected

    def undo(self) -> None:
        try:
            undo_rewind(self.thread, acting_user=self.owner)
        except LifecycleRefused:
            assert not self.before_rewinds
            return
        self.roots = self.before_rewinds.pop()

    def fork(self, number: int) -> "Conversation | None":
        rows = rows_of_call(live_generation(self.thread).pk, LATEST, live_generation(self.thread).cut)
        if not rows:
            return None
        index = number % len(rows)
        try:
            thread = fork(self.owner, self.thread, Message.objects.get(pk=rows[index].id), acting_user=self.owner)
        except LifecycleRefused:
            return None
        copies = Message.objects.filter(thread=thread).order_by("pk").values_list("pk", flat=True)
        return Conversation(self.owner, thread, copies)

    def check(self) -> None:
        """The context holds what it must, in order."""
        generation = live_generation(self.thread)
        rows = rows_of_call(generation.pk, LATEST, generation.cut)
        held = Message.objects.in_bulk([row.id for row in rows])
        assert [self._root(held[row.id]) for row in rows] == self.roots

    def _rewinds(self) -> int:
        return Message.objects.filter(thread=self.thread, meta__has_key="rewind").count()

    def _held_up_to(self, message: Message) -> list[int]:
        """What a message's generation holds, up to it."""
        rows = rows_of_call(message.generation_id, message.pk, message.generation.cut)
        held = Message.objects.in_bulk([row.id for row in rows])
        return [self._root(held[row.id]) for row in rows]

    def _root(self, message: Message) -> int:
        source = message.copied_from
        return source.pk if source is not None and source.thread_id == self.thread.pk else message.pk

    def _append(self, role: str, **options: Any) -> None:
        with transaction.atomic():
            thread = lock_thread(self.thread.pk)
            message = append(thread, live_generation(thread), role, **options)
        self.roots.append(message.pk)

    def _ask(self, model_name: str, answer: list[dict[str, Any]] | None) -> None:
        """One request and its answer; None leaves the answer's row without words."""
        model = catalog.get(model_name)
        with transaction.atomic():
            holding = Holding(
                thread_id=self.thread.pk,
                owner_id=self.owner.pk,
                token=uuid.uuid4(),
                frame_id=0,
                level=Level.USER,
                generation_id=live_generation(self.thread).pk,
            )
            thread = lock_thread(self.thread.pk, stop_asked=stop_asked(holding))
            step = Step()
            # Each call has another limit, so that none can be proved by another's figures.
            call = compose(thread, present(holding, thread), holding, step, model, 1, 1000 + self.calls).call
        self.calls += 1
        row = step.answer
        assert row is not None
        if answer is None:
            close_call(call, outcome=ModelCall.Outcome.INTERRUPTED)
            return
        said = "".join(block.get("text", "") for block in answer)
        finish_answer(row, text=visible(said), wire=canonical(visible_json(answer)), model=model.name)
        usage = Usage(input_tokens=1200, output_tokens=34)
        close_call(call, outcome=ModelCall.Outcome.COMPLETE, usage=usage, first_token_ms=1)
        self.roots.append(row.pk)
