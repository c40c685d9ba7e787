"""Processes that run turns like the server does and kill themselves at one named point of a turn.

Each line on standard input is a point (a key of POINTS or one of its siblings, or "nowhere"); for each, a child is
forked from this loaded but idle process, and says "running PID". It dies by SIGKILL, so nothing of it gets to clean up.
It stands in for the ASGI process: the same bell, the same runner, no pages. That suffices for every point of a turn:
a turn lives in the runner and leaves nothing but rows, pages only read these and put words into the queue, and SIGKILL
ends either process between the same two writes. That the server itself is no different is shown at one point by a real
one, killed in the middle of an answer (tests/test_two_servers.py). At an idle point, which the id of a thread follows,
it stands in for the background worker.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django

BEFORE, AFTER = "before", "after"

# Point: module, function, before or after it ran, at which call.
POINTS: dict[str, tuple[str, str, str, int]] = {
    "while the thread is being taken": ("agent.taking", "take", BEFORE, 1),
    "after the thread was taken": ("agent.taking", "take", AFTER, 1),
    "before the call is recorded": ("agent.turn", "compose", BEFORE, 1),
    "before the call goes out": ("agent.turn.Turn", "_begin", AFTER, 1),
    "in the middle of the stream": ("agent.streaming.DeltaWriter", "_store", AFTER, 2),
    "before the answer is stored": ("agent.turn.Turn", "_store", BEFORE, 1),
    "before the tools start": ("agent.turn.Turn", "_store", AFTER, 1),
    "during a tool": ("agent.tool_running", "_within", BEFORE, 1),
    "between two tools": ("agent.tool_rounds.Round", "_store", AFTER, 1),
    "between the tools and the next request": ("agent.turn.Turn", "_after_tools", AFTER, 1),
    "in the middle of the second stream": ("agent.streaming.DeltaWriter", "_store", AFTER, 6),
    "before the last write": ("agent.turn.Turn", "_store", BEFORE, 2),
    "after the last write": ("agent.turn.Turn", "_store", AFTER, 2),
}

# Points of a renewal of the context, which another test walks.
RENEWAL_POINTS: dict[str, tuple[str, str, str, int]] = {
    "before the summary is asked for": ("agent.compaction", "gather", BEFORE, 1),
    "while the summary is written": ("agent.summarizing", "_open", AFTER, 1),
    "before the new generation is committed": ("agent.renewal", "_commit", BEFORE, 1),
    "in the middle of the commit": ("agent.compaction", "commit", AFTER, 1),
}

# The same for a renewal that nobody asks for: the child takes any context for full.
FULL = "while a full context is renewed"
THRESHOLD_POINTS = {FULL: ("agent.renewal", "_commit", BEFORE, 1)}


# The same for the context of a thread at rest, which a background worker renews without a lease.
IDLE_POINTS: dict[str, tuple[str, str, str, int]] = {
    "before the resting context is read": ("agent.compaction", "_gather_if_idle", BEFORE, 1),
    "while the summary of a resting context is written": ("agent.summarizing", "_open", AFTER, 1),
    "before the resting context is renewed": ("agent.compaction", "_commit_idle", BEFORE, 1),
    "in the middle of the commit of a resting context": ("agent.compaction", "commit", AFTER, 1),
    "after the resting context was renewed": ("agent.compaction", "_commit_idle", AFTER, 1),
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def plant(point: str) -> None:
    """Make the process die at the point."""
    from importlib import import_module

    if point == FULL:
        from agent import compaction

        compaction.THRESHOLD_SHARE = compaction.WORTHWHILE_SHARE = 0.0
    path, name, when, at = {**POINTS, **RENEWAL_POINTS, **THRESHOLD_POINTS, **IDLE_POINTS}[point]
    try:
        owner: Any = import_module(path)
    except ModuleNotFoundError:
        module, _dot, class_name = path.rpartition(".")
        owner = getattr(import_module(module), class_name)
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def count() -> bool:
        nonlocal calls
        calls += 1
        return calls == at

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        due = count()
        if due and when == BEFORE:
            die()
        result = original(*args, **kwargs)
        if due:
            die()
        return result

    setattr(owner, name, wrapped)


async def run() -> None:
    from agent.bell import Bell
    from agent.runner import Runner

    await Bell.shared().start()
    await Runner().start()
    say_running()
    await asyncio.Event().wait()


def work(thread_id: int) -> None:
    from agent import tasks

    say_running()
    tasks.compact_idle(thread_id)
    os._exit(0)


def say_running() -> None:
    sys.stdout.write(f"running {os.getpid()}\n")
    sys.stdout.flush()


def serve() -> None:
    """Fork a child for each point asked for, until standard input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a dead child leaves no entry, so that its end can be seen
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(os.getppid())
            point, _tab, thread_id = line.strip().partition("\t")
            if point != "nowhere":
                plant(point)
            if thread_id:
                work(int(thread_id))
            asyncio.run(run())


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maxclaw.settings")
    django.setup()
    import agent.runner  # noqa: F401  # loaded before the fork, once for all children
    from maxclaw.processes import die_with_parent

    serve()
