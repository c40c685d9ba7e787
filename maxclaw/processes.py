"""Child processes that end with their parent, however it ends."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

PR_SET_PDEATHSIG = 1
# Set in the environment of what `serve` starts: such a process, and what it starts in turn, ends with its
# parent.
SUPERVISOR_VARIABLE = "MAXCLAW_SUPERVISOR"
# Loaded before any fork: the dynamic loader's locks are not safe in a forked child.
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def die_with_parent(parent: int, death_signal: int = signal.SIGKILL) -> None:
    """Ask the kernel for `death_signal` when the thread that started this process ends.

    Call it after any change of user (the kernel forgets the request then) and give the parent's process id as
    the parent saw it: one that is gone already sends no signal any more, so this process then ends at once.
    Does nothing where the kernel has no such request (it is Linux's own).
    """
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def forks_die_with_parent() -> None:
    """Have every process that this one forks from now on, and those that they fork, end with its parent."""
    parents: list[int] = []
    os.register_at_fork(
        before=lambda: parents.append(os.getpid()),
        after_in_parent=parents.clear,
        after_in_child=lambda: die_with_parent(parents[-1]),
    )


def spawn(
    arguments: Sequence[str | Path],
    *,
    death_signal: int = signal.SIGKILL,
    environment: Mapping[str, str] | None = None,
    account: tuple[int, int] | None = None,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    folder: Path | None = None,
    keep_open: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own that gets `death_signal` when this process dies.

    Its own session, so that a terminal's interrupt reaches this process alone, which then ends its children
    in order. Call from the main thread: the kernel ties the child to the starting thread. `account` is (user
    id, group id) to run as; `keep_open` are file descriptors the program inherits.
    """
    parent = os.getpid()
    return subprocess.Popen(
        [str(argument) for argument in arguments],
        env=dict(environment) if environment is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=folder,
        pass_fds=tuple(keep_open),
        start_new_session=True,
        preexec_fn=_in_child(parent, death_signal),
        **as_account(account),
    )


def as_account(account: tuple[int, int] | None) -> dict[str, Any]:
    """The keyword arguments of `subprocess` that run a program as (user id, group id); none for this
    process's own."""
    return {} if account is None else {"user": account[0], "group": account[1], "extra_groups": []}


def _in_child(parent: int, death_signal: int) -> Callable[[], None]:
    return lambda: die_with_parent(parent, death_signal)


def end(process: subprocess.Popen[bytes], first: int, grace_seconds: float) -> None:
    """Send `first`, wait up to `grace_seconds`, then kill. Returns when the process is gone."""
    if process.poll() is None:
        process.send_signal(first)
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()
