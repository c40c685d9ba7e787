"""Records of a person's as a file to keep."""

import json
import tempfile
from collections.abc import AsyncIterator, Iterable
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

CHUNK_BYTES = 65_536
IN_MEMORY_BYTES = 1_000_000


def json_lines(records: Iterable[dict[str, Any]], file_name: str) -> StreamingHttpResponse:
    """The records as a download, one JSON object a line.

    They are written to a nameless file first, gone with the answer: a slow reader holds no database connection, a
    failure is an error page and no half file, and what is in memory does not grow with the number of records.
    """
    spool = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY_BYTES)  # noqa: SIM115 - closed when it is sent
    for record in records:
        spool.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
    size = spool.tell()
    spool.seek(0)
    return StreamingHttpResponse(
        _chunks(spool),
        content_type="application/x-ndjson",
        headers={
            "Content-Length": str(size),
            "Content-Disposition": content_disposition_header(True, file_name) or "",
        },
    )


async def _chunks(spool: IO[bytes]) -> AsyncIterator[bytes]:
    try:
        while chunk := await sync_to_async(spool.read, thread_sensitive=False)(CHUNK_BYTES):
            yield chunk
    finally:
        spool.close()
