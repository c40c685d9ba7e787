"""`python -m llm.emulator`: serve the emulator until the process is told to end."""

import argparse
import ctypes
import os
import signal
import socket
import sys

import uvicorn

from llm.emulator.app import create_app
from llm.emulator.state import EmulatorState, Pace

PR_SET_PDEATHSIG = 1
BACKLOG = 2_048


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and serve. Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m llm.emulator", description="A local model emulator.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8787, help="0 for any free port")
    parser.add_argument("--pace", default="instant", help="instant, realistic or MS:TOKENS_PER_SECOND")
    parser.add_argument("--demo-faults", action="store_true", help="`fault:529` in a user's text switches one on")
    parser.add_argument("--no-bodies", action="store_true", help="keep no request bodies in the log")
    parser.add_argument("--no-control", action="store_true", help="leave out the control interface")
    parser.add_argument("--die-with-parent", action="store_true")
    options = parser.parse_args(arguments)
    try:
        pace = Pace.parse(options.pace)
    except ValueError as error:
        parser.error(str(error))
    if options.die_with_parent:
        die_with_parent()
    state = EmulatorState(pace=pace, demo_faults=options.demo_faults)
    state.log.keeps_bodies = not options.no_bodies
    try:
        listener = _listen(options.host, options.port)
    except OSError as error:
        sys.stderr.write(f"cannot listen on {options.host}:{options.port}: {error.strerror}\n")
        return 1
    host = f"[{options.host}]" if ":" in options.host else options.host
    sys.stdout.write(f"listening on http://{host}:{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        create_app(state, control=not options.no_control),
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies. Only Linux can; elsewhere nothing happens."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent or parent == 1:
        sys.exit("the parent process is gone already")


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    return listener


if __name__ == "__main__":
    sys.exit(main())
