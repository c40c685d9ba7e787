"""Imports that people start on the page: a file in the data folder, a row that says how far it came.

A worker claims the row by one conditional UPDATE and commits, then works; attempts are counted before. It saves how
far it came every second, which renews its lease and reads whether the person cancelled. A lapsed lease is swept by the
tick: the import goes on in another worker, and what is there already is found. The file goes when the import ends,
however it ends.
"""

import logging
import os
import secrets
import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import translation
from django.utils.translation import gettext
from django_q.tasks import async_task

from accounts.models import User
from agent.import_archive import NoExport
from agent.import_index import FileChanged
from agent.import_run import ImportRun, Report
from agent.models import ImportJob
from agent.refusals import Refused
from agent.rules import refine
from maxclaw import clock
from maxclaw.sentences import Sentence, stored
from maxclaw.sentences import sentence as _

logger = logging.getLogger("maxclaw.import")

TASK = "agent.tasks.run_import"
LEASE = timedelta(seconds=120)
SAVE_SECONDS = 1.0
# The queue gives a task 900 s: an import that takes longer goes on in a task of its own.
SLICE_SECONDS = 600.0
ATTEMPTS_MAX = 3
FAILED = _("The import stopped with an error on the server. What was imported so far is there; you can import again.")
# A file that no worker of any machine has found by then is gone.
FILE_WAIT = timedelta(minutes=15)
# An upload that was cut off leaves its file behind.
LEFT_BEHIND = timedelta(hours=2)
FILE_NAME_MAX_CHARS = 255
OPEN_STATES = (ImportJob.State.WAITING, ImportJob.State.RUNNING)


class _Cancelled(Exception):
    """The person does not want it any more."""


class _Taken(Exception):
    """The lease lapsed and another worker has the import."""


class _GoesOnLater(Exception):
    """The slice is over."""


def folder() -> Path:
    """Where uploaded files wait, readable for the server's own user alone."""
    path = settings.DATA_DIR / "imports"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def new_file() -> tuple[str, IO[bytes]]:
    """A new file for an upload: its name in the folder, and the file, opened for writing."""
    name = secrets.token_hex(16)
    descriptor = os.open(folder() / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    return name, os.fdopen(descriptor, "wb")


def remove_file(name: str) -> None:
    """Remove an uploaded file, if it is there."""
    with suppress(FileNotFoundError):
        (folder() / name).unlink()


def start(owner: User, stored_as: str, file_name: str) -> ImportJob:
    """Have an uploaded file imported. Raises Refused, with the file removed, while another import of theirs is open."""
    try:
        with transaction.atomic():
            job = ImportJob.objects.create(
                owner=owner,
                stored_as=stored_as,
                file_name=file_name[-FILE_NAME_MAX_CHARS:],
                total=(folder() / stored_as).stat().st_size,
            )
            _enqueue(job)
    except IntegrityError as error:
        remove_file(stored_as)
        violation = refine(error)
        if violation is None or violation.name != "importjob_one_open_per_owner":
            raise
        raise Refused(
            "import-running", gettext("Another import of yours is not finished. Wait for it, or cancel it.")
        ) from None
    return job


def jobs_of(owner: User) -> QuerySet[ImportJob]:
    """A person's imports, the newest first."""
    return ImportJob.objects.filter(owner=owner).order_by("-id")


def cancel(owner: User, job_id: int) -> ImportJob:
    """Cancel an import of the person's: what was imported stays. Raises ImportJob.DoesNotExist."""
    job = jobs_of(owner).get(pk=job_id)
    waiting = ImportJob.objects.filter(pk=job.pk, state=ImportJob.State.WAITING)
    if waiting.update(state=ImportJob.State.CANCELLED, finished=clock.now(), cancel_asked=True):
        remove_file(job.stored_as)
    else:
        ImportJob.objects.filter(pk=job.pk, state=ImportJob.State.RUNNING).update(cancel_asked=True)
    job.refresh_from_db()
    return job


def run(job_id: int) -> None:
    """Claim an import and work on it until it ends or the slice is over. What is claimed, ended, or lies on another
    machine is left alone."""
    job = _claim(job_id)
    if job is None:
        return
    with translation.override(job.owner.language):
        work = _Work(job)
        try:
            work.do()
        except _Taken:
            return
        except _GoesOnLater:
            work.hand_on()
        except _Cancelled:
            work.end(ImportJob.State.CANCELLED)
        except (NoExport, FileChanged, OSError) as problem:
            sentence = problem.sentence if isinstance(problem, NoExport) else _("The uploaded file cannot be read.")
            work.end(ImportJob.State.FAILED, sentence)
        except Exception:
            # What stands in a file is the person's; the log gets the place alone.
            logger.exception("Import %s failed.", job.pk)
            work.end(ImportJob.State.FAILED, FAILED)
        else:
            work.finish()


class _Work:
    """One worker's hold on one import."""

    def __init__(self, job: ImportJob) -> None:
        self.job = job
        self.report = Report.from_json(job.report)
        self.began = self.saved = clock.monotonic()

    def do(self) -> None:
        run = ImportRun(
            self.job.owner,
            self.report,
            skip=self.job.position,
            on_progress=self._progress,
            after_each=self._after_each,
        )
        with (folder() / self.job.stored_as).open("rb") as file:
            run.take(file, self.job.file_name)

    def _progress(self, done: int, total: int, _sentence: str) -> None:
        if total:
            self.job.done, self.job.total = min(done, total), total
        self._save_now_and_then()

    def _after_each(self, position: int) -> None:
        self.job.position = position
        self._save_now_and_then()
        if clock.monotonic() - self.began > SLICE_SECONDS:
            raise _GoesOnLater

    def _save_now_and_then(self) -> None:
        if clock.monotonic() - self.saved > SAVE_SECONDS:
            self.save()
            if ImportJob.objects.filter(pk=self.job.pk, cancel_asked=True).exists():
                raise _Cancelled

    def save(self, **more: object) -> None:
        """Store how far it came, and hold on. Raises _Taken."""
        self.saved = clock.monotonic()
        held = ImportJob.objects.filter(pk=self.job.pk, lease_token=self.job.lease_token)
        with transaction.atomic():
            stored = held.select_for_update().values_list("report", flat=True).first()
            if stored is None:
                raise _Taken
            self.report.forget(stored.get("forgotten", []))
            held.update(
                **{
                    "done": self.job.done,
                    "total": self.job.total,
                    "position": self.job.position,
                    "report": self.report.to_json(),
                    "lease_until": clock.now() + LEASE,
                    **more,
                }
            )

    def hand_on(self) -> None:
        """Go on in a task of its own: this was no failure."""
        with suppress(_Taken), transaction.atomic():
            self.save(state=ImportJob.State.WAITING, lease_token=None, lease_until=None, attempts=0)
            _enqueue(self.job)

    def finish(self) -> None:
        if self.report.seen or self.report.empty:
            self.job.done = self.job.total
            self.end(ImportJob.State.DONE)
        else:
            self.end(ImportJob.State.FAILED, _("No conversation was found in this file."))

    def end(self, state: ImportJob.State, problem: Sentence | str = "") -> None:
        with suppress(_Taken):
            self.save(state=state, lease_token=None, lease_until=None, finished=clock.now(), problem=stored(problem))
            remove_file(self.job.stored_as)


def sweep() -> None:
    """What the tick does: imports whose worker is gone go on, or fail after ATTEMPTS_MAX; waiting ones are asked for
    again; files of no import go."""
    now = clock.now()
    for job in ImportJob.objects.filter(state=ImportJob.State.RUNNING, lease_until__lt=now).select_related("owner"):
        lapsed = ImportJob.objects.filter(pk=job.pk, lease_token=job.lease_token, lease_until__lt=now)
        freed = {"lease_token": None, "lease_until": None}
        if job.attempts < ATTEMPTS_MAX and not job.cancel_asked:
            lapsed.update(state=ImportJob.State.WAITING, **freed)
        else:
            state = ImportJob.State.CANCELLED if job.cancel_asked else ImportJob.State.FAILED
            problem = "" if job.cancel_asked else stored(FAILED)
            if lapsed.update(state=state, finished=now, problem=problem, **freed):
                remove_file(job.stored_as)
    for job in ImportJob.objects.filter(state=ImportJob.State.WAITING).select_related("owner"):
        waited_since = job.started or job.created
        if now - waited_since > FILE_WAIT and not (folder() / job.stored_as).exists():
            problem = stored(_("The uploaded file is gone. Upload it again."))
            waiting = ImportJob.objects.filter(pk=job.pk, state=ImportJob.State.WAITING)
            waiting.update(state=ImportJob.State.FAILED, finished=now, problem=problem)
        else:
            _enqueue(job)
    for path in _left_behind():
        path.unlink(missing_ok=True)


def _left_behind() -> Iterator[Path]:
    """Files of imports that ended, and of uploads that were cut off."""
    in_use = set(ImportJob.objects.filter(state__in=OPEN_STATES).values_list("stored_as", flat=True))
    ended = set(ImportJob.objects.exclude(state__in=OPEN_STATES).values_list("stored_as", flat=True))
    for path in folder().iterdir():
        with suppress(FileNotFoundError):
            old = path.stat().st_mtime < (clock.now() - LEFT_BEHIND).timestamp()
            if path.name in ended or (old and path.name not in in_use):
                yield path


def _claim(job_id: int) -> ImportJob | None:
    job = ImportJob.objects.filter(pk=job_id).first()
    if job is None or not (folder() / job.stored_as).exists():
        return None
    claimed = ImportJob.objects.filter(pk=job_id, state=ImportJob.State.WAITING).update(
        state=ImportJob.State.RUNNING,
        attempts=F("attempts") + 1,
        lease_token=uuid.uuid4(),
        lease_until=clock.now() + LEASE,
        started=job.started or clock.now(),
    )
    return ImportJob.objects.select_related("owner").get(pk=job_id) if claimed else None


def _enqueue(job: ImportJob) -> None:
    async_task(TASK, job.pk, group="import")
