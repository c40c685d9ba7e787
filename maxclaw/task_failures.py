"""What is kept of a background task that failed: where it failed and with which error, never what the error says.

Errors quote what they stumble over, PostgreSQL's above all whole rows, and with them what people wrote. The queue keeps
a failed task's result for everybody who may look at the queue, and logs it.
"""

import sys
import traceback
from typing import Any

import django_q.worker
from django_q.signals import post_execute_in_worker

_UNTOLD = "It failed."


def without_words(error: BaseException) -> str:
    """The error and those that led to it, the first one first: lines of code, the error's class and, of the
    database's, its code and the constraint."""
    told: list[str] = []
    seen: set[int] = set()
    reason: BaseException | None = error
    while reason is not None and id(reason) not in seen:
        seen.add(id(reason))
        told.insert(0, "".join(traceback.format_tb(reason.__traceback__)) + _name(reason))
        reason = reason.__cause__ or (None if reason.__suppress_context__ else reason.__context__)
    return "\n\n".join(told)


def _name(error: BaseException) -> str:
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    code = getattr(error, "sqlstate", None)
    constraint = getattr(getattr(error, "diag", None), "constraint_name", None)
    return " ".join([name, *([f"({code})"] if code else []), *([f'constraint "{constraint}"'] if constraint else [])])


class _Failure:
    """The queue's error reporter: asked while the error is at hand. The result that the queue makes of it comes after,
    and is replaced before it leaves the worker."""

    told = ""

    def report(self) -> None:
        error = sys.exception()
        self.told = without_words(error) if error is not None else ""

    def replace_result(self, task: dict[str, Any], **_signal: Any) -> None:
        if task.get("success") is False:
            task["result"], self.told = self.told or _UNTOLD, ""


_failure = _Failure()


def keep_words_out() -> None:
    """From now on, in this process and what it forks."""
    django_q.worker.error_reporter = _failure
    post_execute_in_worker.connect(_failure.replace_result, dispatch_uid="maxclaw.task_failures")
