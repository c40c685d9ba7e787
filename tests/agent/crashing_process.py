"""Servers that kill themselves at one named point of a turn.

Each line on standard input is a JSON object; for each, a child is forked from this loaded but idle process, and says
"running PID". `point` is a key of POINTS or one of its siblings, or "nowhere". With a `port` the child becomes the web
server there, by uvicorn's own command line as `serve` gives it: pages, sockets, bell and runner; `later` moves its
clock by so many seconds. With a `resting` thread's id it is the background worker that renews this one's context. It
dies by SIGKILL, so nothing of it gets to clean up.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

BEFORE, AFTER = "before", "after"
# Before the first fork, for all children. The application comes first: it sets Django up.
LOADED_ONCE = ("maxclaw.asgi", "agent.runner", "agent.tasks", "uvicorn.main")

# Point: module, function, before or after it ran, at which call.
POINTS: dict[str, tuple[str, str, str, int]] = {
    "before the words are stored": ("agent.sending", "send", BEFORE, 1),
    "before the page is told that they are": ("agent.sending", "send", AFTER, 1),
    "while the thread is being taken": ("agent.taking", "take", BEFORE, 1),
    "after the thread was taken": ("agent.taking", "take", AFTER, 1),
    "before the call is recorded": ("agent.turn", "compose", BEFORE, 1),
    "before the call goes out": ("agent.turn.Turn", "_begin", AFTER, 1),
    "in the middle of the stream": ("agent.streaming.DeltaWriter", "_store", AFTER, 2),
    "before the answer is stored": ("agent.turn.Turn", "_store", BEFORE, 1),
    "before the tools start": ("agent.turn.Turn", "_store", AFTER, 1),
    "during a tool": ("agent.tools", "read_page", AFTER, 1),
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


def serve(port: int, later_seconds: float) -> None:
    from uvicorn.main import main

    from maxclaw import clock
    from maxclaw.supervisor import Plan, web_arguments

    clock.move(later_seconds)
    arguments = web_arguments(Plan("127.0.0.1", port))
    main(arguments[arguments.index("uvicorn") + 1 :])


def work(thread_id: int) -> None:
    from agent import tasks

    tasks.compact_idle(thread_id)


def bear() -> None:
    """Fork a child for each line, until standard input ends."""
    from maxclaw.processes import die_with_parent

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # a dead child leaves no entry, so that its end can be seen
    say("ready")
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with_parent(os.getppid())
            live(json.loads(line))
            os._exit(0)


def live(asked: dict[str, Any]) -> None:
    say(f"running {os.getpid()}")
    if asked["point"] != "nowhere":
        plant(asked["point"])
    if "resting" in asked:
        work(asked["resting"])
    else:
        serve(asked["port"], asked["later"])


def say(words: str) -> None:
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for module in LOADED_ONCE:
        import_module(module)
    bear()
