"""A real socket to the live server, as a page opens it."""

import json
from contextlib import ExitStack
from typing import Any

from django.conf import settings
from websockets.sync.client import ClientConnection, connect

from tests.browser import signed_in_session

WAIT_SECONDS = 10.0
SILENCE_SECONDS = 0.4
# Comes whenever the list changes; tests that are not about it look past it.
LIST = "threads"


class Socket:
    """One page's socket. `receive` looks past the list of conversations unless it is asked for it."""

    def __init__(self, server: Any, session_key: str | None, **options: Any) -> None:
        cookie = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session_key}"} if session_key else {}
        self._open = ExitStack()
        self.connection: ClientConnection = self._open.enter_context(
            connect(
                server.url.replace("http", "ws") + "/ws/chat/",
                origin=server.url,
                additional_headers=cookie,
                max_size=None,
                **options,
            )
        )

    def __enter__(self) -> "Socket":
        return self

    def __exit__(self, *_exception: object) -> None:
        self._open.close()

    def send(self, **frame: Any) -> None:
        self.send_raw(json.dumps(frame))

    def send_raw(self, data: str | bytes) -> None:
        self.connection.send(data)

    def receive(self, kind: str | None = None, timeout: float = WAIT_SECONDS) -> dict[str, Any]:
        """The next frame; with a kind, the next of that kind, which must not be hidden behind an error."""
        while True:
            frame = json.loads(self.connection.recv(timeout=timeout))
            if frame["type"] == kind or (kind is None and frame["type"] != LIST):
                return frame
            assert kind is None or frame["type"] not in ("error", "chat_rejected"), frame

    def ask(self, kind: str | None = None, **frame: Any) -> dict[str, Any]:
        """Send a frame and receive what comes next."""
        self.send(**frame)
        return self.receive(kind)

    def open(self, channel: str, after: int | None = None) -> dict[str, Any]:
        """Open a conversation; returns the first answer, when the server is done with opening it."""
        answer = self.ask(type="open", channel=channel, after=after)
        assert self.is_usable()
        return answer

    def events(self, count: int) -> list[dict[str, Any]]:
        """The next `count` events, however many come in one frame."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += self.receive("events")["events"]
        assert len(found) == count, found
        return found

    def is_usable(self) -> bool:
        return self.ask(type="ping") == {"type": "pong"}

    def silent(self) -> bool:
        try:
            frame = self.receive(timeout=SILENCE_SECONDS)
        except TimeoutError:
            return True
        raise AssertionError(f"not silent: {frame}")


def open_socket(server: Any, user: Any = None, **options: Any) -> Socket:
    """A socket of the user's, in a login of its own; without a user, of nobody's."""
    return Socket(server, signed_in_session(user).session_key if user is not None else None, **options)
