"""An uploaded file on its way to where it is imported from: written as it comes, never whole in memory, readable for
the server's own user alone."""

import errno
from typing import IO, Any

from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest
from django.utils.translation import gettext as _

from agent import import_jobs
from maxclaw.text import visible

FIELD = "file"
# What a form adds to its file.
FORM_MAX_BYTES = 1_000_000


class ImportUpload(FileUploadHandler):
    """Takes the one file of a form into the folder of imports. After the form was read, `stored_as` names the file, or
    `problem` is a sentence that says why there is none."""

    def __init__(self, request: HttpRequest, max_bytes: int) -> None:
        super().__init__(request)
        self.max_bytes = max_bytes
        self.stored_as = ""
        self.original_name = ""
        self.size = 0
        self.problem = ""
        self._file: IO[bytes] | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        if self.field_name == FIELD and not self.stored_as:
            self.stored_as, self._file = import_jobs.new_file()
            self.original_name = visible(self.file_name or "")

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        if self._file is None:
            return
        self.size += len(raw_data)
        if self.size > self.max_bytes:
            self._give_up(too_large(self.max_bytes))
        try:
            self._file.write(raw_data)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            self._give_up(
                _("The server has no room for this file.") if full else _("The server could not store this file.")
            )

    def file_complete(self, file_size: int) -> UploadedFile | None:
        if self._file is None:
            return None
        self._file.close()
        self._file = None
        return UploadedFile(name=self.file_name, size=file_size)

    def upload_interrupted(self) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove what was stored."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if self.stored_as:
            import_jobs.remove_file(self.stored_as)
            self.stored_as = ""

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.discard()
        # The rest is read and dropped, so that the browser gets to read the answer.
        raise StopUpload(connection_reset=False)


def too_large(max_bytes: int) -> str:
    """The sentence about a file over the limit."""
    return _("The file is larger than %(limit)s MB, the most that this server takes at once.") % {
        "limit": f"{max_bytes // 1024**2:,}"
    }
