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

    def take(self, address: str) -> None:
        """Hold the lock until this process ends. Raises AlreadyServing with the holder's words."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not try_lock(self.descriptor):
            raise AlreadyServing(self._holder())
        words = {"pid": os.getpid(), "address": address, "since": clock.now().isoformat(timespec="seconds")}
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, json.dumps(words).encode(), 0)

    def release(self) -> None:
        os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)

    def _holder(self) -> str:
        try:
            holder = json.loads(os.pread(self.descriptor, 10_000, 0))
            at = f" at {holder['address']}" if holder["address"] else ""
            since = holder["since"].replace("T", " ").replace("+00:00", " UTC")
            return f"MaxClaw is already running{at} (process {holder['pid']}, since {since})."
        except (ValueError, KeyError):
            return "MaxClaw is already starting."
        finally:
            os.close(self.descriptor)
