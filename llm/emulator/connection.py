"""One HTTP exchange at the level of ASGI, where a client that goes away is noticed at once."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from starlette.types import Receive, Scope, Send

from llm.emulator.errors import ApiError
from llm.emulator.request_shape import BODY_MAX_BYTES

TRANSPORT_KEY = "emulator.transport"


class ClientGone(Exception):
    """The client closed the connection before its answer was complete."""


class Connection:
    """Reads the request, sends the answer, and can wait without overlooking that the client has gone."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self._receive = receive
        self._send = send
        self._gone = asyncio.Event()
        self._watcher: asyncio.Task[None] | None = None
        self.headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}

    async def body(self) -> bytes:
        """The request's body. Raises ApiError 413 above BODY_MAX_BYTES, once all of it is read."""
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            size += len(message.get("body", b""))
            if size <= BODY_MAX_BYTES:
                parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        if size > BODY_MAX_BYTES:
            raise ApiError("Request exceeds the maximum size", 413)
        self._watcher = asyncio.create_task(self._watch())
        return b"".join(parts)

    async def start(self, status: int, headers: dict[str, str]) -> None:
        self._check()
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    async def chunk(self, data: bytes) -> None:
        """Send a piece of the body. Raises ClientGone when nobody is left to read it."""
        self._check()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._check()

    async def finish(self, data: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": data})

    async def drop(self) -> None:
        """Close the TCP connection in the middle of the answer, after what was already sent."""
        self.scope[TRANSPORT_KEY].close()
        await self._gone.wait()

    async def wait(self, until: Coroutine[Any, Any, Any]) -> None:
        """Wait for `until`. Raises ClientGone as soon as the client goes."""
        waiting = asyncio.ensure_future(until)
        gone = asyncio.ensure_future(self._gone.wait())
        try:
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            gone.cancel()
        self._check()

    async def sleep(self, seconds: float) -> None:
        if seconds > 0:
            await self.wait(asyncio.sleep(seconds))

    def close(self) -> None:
        if self._watcher:
            self._watcher.cancel()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()

    def _check(self) -> None:
        if self._gone.is_set():
            raise ClientGone


def with_transport(
    app: Callable[[Scope, Receive, Send], Awaitable[None]],
) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """Put uvicorn's transport into the scope, where `Connection.drop` finds it."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        scope[TRANSPORT_KEY] = getattr(getattr(send, "__self__", None), "transport", None)
        await app(scope, receive, send)

    return wrapped
