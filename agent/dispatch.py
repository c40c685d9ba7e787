"""Tasks: threads of their own that an agent starts, and whose result comes back to the thread that asked."""

from accounts.models import User
from agent.bell import ring
from agent.models import InboxItem, Level, TaskFrame
from maxclaw.text import head_and_tail
from threads.lifecycle import create_thread, settle
from threads.models import Message, Thread
from threads.signals import SettledReason
from threads.transcript import lock_thread
from threads.visibility import Level as ThreadLevel
from threads.visibility import can_flow

DISPATCH_TOOL = "dispatch_task"
RESULT_MAX_CHARS = 8_000
NESTING_MAX = 3


class TooDeep(Exception):
    """A task of a task of a task may not start another: work would multiply without anybody looking."""


def may_start(thread: Thread) -> bool:
    """Whether a thread may start a task: how deep it is nested never changes."""
    return _nesting(thread) < NESTING_MAX


def start_task(owner: User, parent: Thread, title: str, instructions: str, *, client_key: str) -> Thread:
    """A task thread with the parent's level; its instructions wait in its inbox and start its first turn. Inside a
    transaction: a parent that is made stricter meanwhile takes the task along."""
    parent = lock_thread(parent.pk)
    if not may_start(parent):
        raise TooDeep
    task = create_thread(owner, title=title, kind=Thread.Kind.TASK, parent=parent)
    InboxItem.objects.create(
        thread=task,
        owner_id=task.owner_id,
        level=Level.TASK,
        source=f"task/{parent.channel}",
        text=f"Task from conversation {parent.channel}: {title}\n\n{instructions}",
        client_key=client_key,
    )
    ring("wake", {"thread": task.pk})
    return task


def deliver_result(task: Thread, frame: TaskFrame) -> None:
    """Put the task's result into the inbox of the thread that asked (its owner's main thread when that one is gone or
    put away), once for each of the task's turns, under the visibility rule. Inside the transaction that ends the
    turn: a crash loses neither."""
    target = task.parent
    if target is None or target.status != Thread.Status.ACTIVE or target.deleted:
        target = Thread.objects.get(owner_id=task.owner_id, kind=Thread.Kind.MAIN)
    outcome = "finished" if frame.end_reason == TaskFrame.EndReason.ANSWERED else f"ended ({frame.end_reason})"
    if can_flow(ThreadLevel.of_thread(task), ThreadLevel.of_thread(target)):
        body = frame.notice or _last_answer(task)
        shown = head_and_tail(
            body, RESULT_MAX_CHARS, lambda left_out: f"\n[... {left_out:,} characters left out ...]\n"
        )
        text = f"Task {task.channel} ({task.title}) {outcome}. Its result:\n\n{shown or '(no text)'}"
    else:
        # The title is content as much as the result.
        text = (
            f"Task {task.channel} {outcome}. Its result may not be shown here: the task's level is stricter than this "
            "conversation's."
        )
    _item, created = InboxItem.objects.get_or_create(
        thread=target,
        client_key=f"task:{frame.pk}",
        defaults={
            "owner_id": task.owner_id,
            "level": Level.TASK,
            "source": f"task/{task.channel}",
            "text": text,
        },
    )
    if created:
        ring("wake", {"thread": target.pk})
        settle(target, SettledReason.TASK_ENDED)


def _last_answer(task: Thread) -> str:
    rows = Message.objects.filter(thread=task, role=Message.Role.ASSISTANT, wire__isnull=False).exclude(text="")
    last = rows.order_by("-id").first()
    return last.text if last else ""


def _nesting(thread: Thread) -> int:
    depth = 0
    seen: Thread | None = thread
    while seen is not None and seen.kind == Thread.Kind.TASK and depth < NESTING_MAX:
        depth += 1
        seen = seen.parent
    return depth
