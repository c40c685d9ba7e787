"""Messages of an export as rows to append (see `import_rows.Passage`): wire that every model takes, with exactly one
result for every call."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent.import_history import NO_RESULT, Call, History, Piece
from agent.models import ToolCall
from agent.tool_results import ROUND_BUDGET_SHARE, result_wire, shortened
from llm.catalog import Model
from llm.estimates import estimate_tokens
from llm.wire import canonical
from threads.models import Message
from threads.transcript import NewMessage, text_block

# A result of fewer characters fits any model's share of a round, so it is not measured.
SURELY_FITS_CHARS = 2_000
RESULT_FRAME_TOKENS = 30


@dataclass(frozen=True)
class _Row:
    """One row: what it says, the key of the message of the export that it is of, or the row that it copies."""

    piece: Piece
    key: str = ""
    node_id: str = ""
    copy_of: Message | None = None


class HistoryPassage:
    """Messages of a history that follow one another, as rows; before them `copies` of rows that stand elsewhere, the
    last of which asked `open_calls`."""

    def __init__(
        self,
        history: History,
        node_ids: Sequence[str],
        *,
        open_calls: tuple[Call, ...] = (),
        copies: Sequence[Message] = (),
    ) -> None:
        self.history = history
        self.rows = [_Row(_copied(row, open_calls if row is copies[-1] else ()), copy_of=row) for row in copies]
        self._lay_out(node_ids, open_calls)
        # Of each row the place of the one that asked for it, itself for any that nobody asked for.
        self.asked_at: list[int] = []
        for place in range(len(self.rows)):
            self.asked_at.append(self.asked_at[-1] if place and self.goes_with_the_one_before(place) else place)
        self.round_sizes = Counter(self.asked_at)
        # Once they are stored: the rows, and (key, first row, last row) of each message.
        self.written: list[Message] = []
        self.stored: list[tuple[str, int, int]] = []

    def _lay_out(self, node_ids: Sequence[str], open_calls: tuple[Call, ...]) -> None:
        asked_by = self.rows[-1] if self.rows else None
        for node_id in node_ids:
            node = self.history.nodes[node_id]
            key = self.history.key(node_id)
            answered = node.answer.answers if node.answer is not None else ""
            if node.answer is not None and any(call.call_id == answered for call in open_calls):
                self.rows.append(_Row(node.answer, key, node_id))
                open_calls = tuple(call for call in open_calls if call.call_id != answered)
                continue
            self._close(open_calls, asked_by)
            for piece in node.pieces:
                self.rows.append(_Row(piece, key, node_id))
            open_calls, asked_by = node.open_calls, self.rows[-1]
        self._close(open_calls, asked_by)

    def _close(self, open_calls: tuple[Call, ...], asked_by: _Row | None) -> None:
        """A call that nothing answers gets a result that says so: no model takes the one without the other."""
        for call in open_calls:
            assert asked_by is not None
            piece = Piece(Message.Role.TOOL, NO_RESULT, asked_by.piece.created, answers=call.call_id)
            self.rows.append(_Row(piece, asked_by.key, asked_by.node_id))

    @property
    def last(self) -> datetime:
        return max(row.piece.created for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def begins_exchange(self, place: int) -> bool:
        return self.rows[place].piece.role == Message.Role.USER

    def goes_with_the_one_before(self, place: int) -> bool:
        return self.rows[place].piece.role == Message.Role.TOOL

    def created(self, place: int) -> datetime:
        return self.rows[place].piece.created

    def tokens(self, place: int, model: Model) -> int:
        row = self.rows[place]
        if row.copy_of is not None:
            return estimate_tokens(row.copy_of.wire or "", model)
        if row.piece.role != Message.Role.TOOL:
            return estimate_tokens(_wire(row.piece) or "", model)
        whole = estimate_tokens(row.piece.text, model)
        return min(whole, self._allowance(place, model)) + RESULT_FRAME_TOKENS

    def names_itself(self, place: int, model: Model) -> bool:
        row = self.rows[place]
        if row.piece.role != Message.Role.TOOL or row.copy_of is not None:
            return False
        if len(row.piece.text) * self.round_sizes[self.asked_at[place]] <= SURELY_FITS_CHARS:
            return False
        return estimate_tokens(row.piece.text, model) > self._allowance(place, model)

    def _allowance(self, place: int, model: Model) -> int:
        """Tokens that one result of a round may take, as in a turn."""
        results = max(self.round_sizes[self.asked_at[place]] - 1, 1)
        return int(model.context_budget * ROUND_BUDGET_SHARE) // results

    def message(self, place: int, row_id: int | None, model: Model) -> NewMessage:
        row = self.rows[place]
        piece = row.piece
        if row.copy_of is not None:
            return _copy(row.copy_of, row_id)
        meta: dict[str, Any] = {"import": {"key": row.key, "id": row.node_id}}
        if piece.model:
            meta["import"]["model"] = piece.model
        if piece.thinking:
            meta["thinking"] = piece.thinking
        text, wire = piece.text, _wire(piece)
        if piece.role == Message.Role.TOOL:
            text = text if text.strip() else "(no output)"
            shown = text
            if row_id is not None and self.names_itself(place, model):
                shown = shortened(text, self._allowance(place, model), model, row_id)
            wire = result_wire(piece.answers, shown, piece.is_error)
        return NewMessage(
            role=piece.role,
            text=text,
            wire=wire,
            tool_call_id=piece.answers,
            is_error=piece.is_error,
            meta=meta,
            created=piece.created,
            id=row_id,
        )

    def calls(self, first: int, rows: Sequence[Message]) -> list[ToolCall]:
        self.written += rows
        made = []
        for offset, stored in enumerate(rows):
            row = self.rows[first + offset]
            if row.key:
                self._remember(row.key, stored.pk)
            for position, call in enumerate(row.piece.calls):
                made.append(self._call(call, position, stored, rows[offset + 1 :]))
        return made

    def _call(self, call: Call, position: int, stored: Message, after: Sequence[Message]) -> ToolCall:
        result = next((row for row in after if row.tool_call_id == call.call_id), None)
        failed = result is not None and result.is_error
        return ToolCall(
            message=stored,
            thread_id=stored.thread_id,
            owner_id=stored.owner_id,
            call_id=call.call_id,
            position=position,
            tool=call.tool,
            arguments=call.arguments,
            status=ToolCall.Status.FAILED if failed else ToolCall.Status.DONE,
            result=result,
            started=stored.created,
        )

    def _remember(self, key: str, row_id: int) -> None:
        if self.stored and self.stored[-1][0] == key:
            self.stored[-1] = (key, self.stored[-1][1], row_id)
        else:
            self.stored.append((key, row_id, row_id))


def _wire(piece: Piece) -> str | None:
    """The content blocks of what is no tool result; None for thinking alone, which is never sent."""
    blocks: list[dict[str, Any]] = [text_block(piece.text)] if piece.text.strip() else []
    for call in piece.calls:
        blocks.append({"type": "tool_use", "id": call.call_id, "name": call.wire_name, "input": call.arguments})
    return canonical(blocks) if blocks else None


def _copied(row: Message, calls: tuple[Call, ...]) -> Piece:
    return Piece(Message.Role(row.role), row.text, row.created, calls=calls, answers=row.tool_call_id)


def _copy(row: Message, row_id: int | None) -> NewMessage:
    return NewMessage(
        role=row.role,
        text=row.text,
        wire=row.wire,
        model=row.model,
        tool_call_id=row.tool_call_id,
        is_error=row.is_error,
        model_visible=row.model_visible,
        meta=row.meta,
        created=row.created,
        copied_from_id=row.pk,
        id=row_id,
    )
