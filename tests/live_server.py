"""A whole ASGI server of MaxClaw in a thread of the test, on the test's database: pages, sockets and turns."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

START_SECONDS = 20.0


class LiveServer:
    """One running server; `url` has no slash at its end."""

    def __init__(self, port: int = 0) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.port: int = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread: threading.Thread | None = None
        self._server: uvicorn.Server | None = None

    def start(self) -> None:
        from django.conf import settings

        from maxclaw.asgi import application

        config = uvicorn.Config(
            application,
            lifespan="on",
            log_level="warning",
            ws_max_size=settings.SOCKET_MAX_BYTES,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self.socket],), name="live server")
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._server.started:
            assert self._thread.is_alive() and time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop it; once is enough."""
        if self._thread is None:
            return
        assert self._server is not None
        self._server.should_exit = True
        self._thread.join(START_SECONDS)
        assert not self._thread.is_alive(), "the server did not stop"
        self._thread = None
        self.socket.close()

    def kill_sockets(self) -> None:
        """Every WebSocket is gone in the middle of whatever it sends, without a farewell."""
        assert self._server is not None
        for connection in list(self._server.server_state.connections):
            if "websocket" in type(connection).__module__:
                connection.loop.call_soon_threadsafe(connection.transport.abort)


@contextmanager
def running_server(port: int = 0) -> Iterator[LiveServer]:
    """Start a server, and stop it at the end of the block. Needs a test with `transaction=True`."""
    server = LiveServer(port)
    server.start()
    try:
        yield server
    finally:
        server.stop()
