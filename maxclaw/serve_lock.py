"""One server per data folder: the first holds a lock that the kernel frees when it dies, and says who it
is."""

import json
import os
from pathlib import Path

from maxclaw import clock
from maxclaw.embedded import try_lock


class AlreadyServing(Exception):
    """Another server holds the lock. The text says which."""


class ServeLock:
    """The lock of one kind of server (`serve`, `serve-web-8000`, `serve-worker`) in a data folder."""

    def __init__(self, data_dir: Path, kind: str) -> None:
        self.path = data_dir / f"{kind}.lock"
        self.descriptor: int | None = None

    def take(self, address: str) -> None:
        """Hold the lock until this process ends. Raises AlreadyServing with the holder's words."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not try_lock(descriptor):
            raise AlreadyServing(_words_of_holder(descriptor))
        self.descriptor = descriptor
        words = {"pid": os.getpid(), "address": address, "since": clock.now().isoformat(timespec="seconds")}
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(words).encode(), 0)

    def release(self) -> None:
        """Let the next one in. Does nothing when the lock is not held."""
        if self.descriptor is not None:
            os.ftruncate(self.descriptor, 0)
            os.close(self.descriptor)
            self.descriptor = None


def _words_of_holder(descriptor: int) -> str:
    """Who holds the lock, closing the descriptor; less when it has not written that yet."""
    try:
        holder = json.loads(os.pread(descriptor, 10_000, 0))
        at = f" at {holder['address']}" if holder["address"] else ""
        since = holder["since"].replace("T", " ").replace("+00:00", " UTC")
        return f"MaxClaw is already running{at} (process {holder['pid']}, since {since})."
    except (ValueError, KeyError):
        return "MaxClaw is already starting."
    finally:
        os.close(descriptor)
