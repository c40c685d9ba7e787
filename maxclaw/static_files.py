"""Static files under ASGI: read piece by piece in a thread, where the library would first read each whole one."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from whitenoise.middleware import WhiteNoiseFileResponse, WhiteNoiseMiddleware

PIECE_BYTES = 65_536


class StaticFileResponse(WhiteNoiseFileResponse):
    """A file that is sent by asynchronous servers as well as by others."""

    block_size = PIECE_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces: Iterator[bytes] = iter(self.streaming_content)

        def next_piece() -> bytes:
            return next(pieces, b"")

        while piece := await sync_to_async(next_piece, thread_sensitive=False)():
            yield piece


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise, answering with StaticFileResponse."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> StaticFileResponse:
        found = static_file.get_response(request.method, request.META)
        response = StaticFileResponse(found.file or (), status=int(found.status))
        del response["content-type"]
        for name, value in found.headers:
            response[name] = value
        return response
