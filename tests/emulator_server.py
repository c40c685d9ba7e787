"""Runs the model emulator as its own process, for any test that talks to a model."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llm.emulator.client import EmulatorControl

ROOT = Path(__file__).resolve().parent.parent
END_SECONDS = 5.0


@contextmanager
def running_emulator(
    *,
    port: int = 0,
    pace: str = "instant",
    demo_faults: bool = False,
    bodies: bool = True,
    clock_shift_seconds: float = 0.0,
    env: dict[str, str] | None = None,
) -> Iterator[EmulatorControl]:
    """Start an emulator on a free port and yield its control client; `.base_url` is what an SDK client takes.

    The process ends with the block, and with the test run however that ends: the kernel kills it when the thread
    that started it ends, so enter this from a thread that outlives the tests.
    """
    command = [sys.executable, "-m", "llm.emulator", "--port", str(port), "--pace", pace, "--die-with-parent"]
    command += ["--demo-faults"] if demo_faults else []
    command += [] if bodies else ["--no-bodies"]
    environment = {**os.environ, "MAXCLAW_CLOCK_SHIFT_SECONDS": str(clock_shift_seconds), **(env or {})}
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"the emulator did not start: {line!r}")
        control = EmulatorControl(line.removeprefix("listening on ").strip())
        try:
            yield control
        finally:
            control.close()
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
