"""What becomes of a run: taken by one worker, and over once. Each step is one transaction of its own.

A run is taken by conditional UPDATE and committed before any model is asked, so an attempt counts although its worker
dies. It ends `completed`, `failed` or `cancelled`, whoever is first, and stays so.
"""

from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q

from llm.models import ModelCall
from maxclaw import clock
from shadow.models import ShadowRun
from threads.models import Generation

PAUSE_AFTER_FAILURES = 3
PAUSE = timedelta(hours=6)
# One request and what is done around it.
RUN_SECONDS = 330.0
# Longer than a run may take, so that nobody ends what somebody still works at; and by no more than storing takes, since
# the run of a worker that died keeps its conversation and a place among those that run at once.
CLAIM = timedelta(seconds=RUN_SECONDS + 60)
# Calls of runs that were over before them are swept so far back.
SWEPT = timedelta(hours=1)
LOST = "worker-lost"

Status = ShadowRun.Status


def take(run: ShadowRun) -> bool:
    """Make a queued run a running one, with what it reads and how, as set on `run`. False: it was dropped, or another
    run of the conversation goes on."""
    values = {
        "status": Status.RUNNING,
        "generation_id": run.generation_id,
        "through_seq": run.through_seq,
        "path": run.path,
        "path_reason": run.path_reason,
        "model": run.model,
        "started": clock.now(),
        "not_before": None,
        "error": "",
    }
    try:
        with transaction.atomic():
            taken = ShadowRun.objects.filter(pk=run.pk, status=Status.QUEUED).update(**values)
    except IntegrityError:
        return False
    for name, value in values.items():
        setattr(run, name, value)
    return bool(taken)


def drop(run: ShadowRun) -> None:
    """Nothing is to be asked: a queued run goes as if it had never been."""
    ShadowRun.objects.filter(pk=run.pk, status=Status.QUEUED).delete()


def fail_queued(run: ShadowRun, generation: Generation | None, error: str) -> None:
    """A queued run failed before it could be taken, at what it was to read of this generation."""
    now = clock.now()
    ShadowRun.objects.filter(pk=run.pk, status=Status.QUEUED).update(
        status=Status.FAILED, generation=generation, error=error[:200], started=now, ended=now
    )


def put_off(run: ShadowRun, until: datetime, why: str) -> None:
    """Nothing can be asked until then, so nothing failed: the run is a queued one that waits, whether it was taken or
    not. Where another one was queued for the conversation meanwhile, that one is as good."""
    asked_nothing = Q(status=Status.QUEUED) | Q(status=Status.RUNNING, call__isnull=True)
    mine = ShadowRun.objects.filter(asked_nothing, pk=run.pk)
    reads_nothing = {"generation": None, "through_seq": None, "path": "", "path_reason": "", "model": ""}
    try:
        with transaction.atomic():
            mine.update(status=Status.QUEUED, started=None, not_before=until, error=why[:200], **reads_nothing)
    except IntegrityError:
        mine.delete()


def name_call(run: ShadowRun, call: ModelCall) -> bool:
    """Say which call the run makes. In the transaction that opens the call; False: the run is over, and nothing may go
    out."""
    run.call = call.pk
    return bool(ShadowRun.objects.filter(pk=run.pk, status=Status.RUNNING).update(call=call.pk))


def end(run: ShadowRun, status: ShadowRun.Status, error: str = "") -> bool:
    """Write what became of a running run, with the figures of its call. False: it is over already. One that was
    cancelled meanwhile gets the figures."""
    call = None if run.call is None else ModelCall.objects.filter(pk=run.call).first()
    figures = _figures(call)
    values = {"status": status, "error": error[:200], "ended": clock.now(), **figures}
    mine = ShadowRun.objects.filter(pk=run.pk)
    if mine.filter(status=Status.RUNNING).update(**values):
        return True
    if figures:
        untold = {f"{name}__isnull": True for name in figures}
        mine.filter(status=Status.CANCELLED, **untold).update(**figures)
    return False


def is_paused(generation_id: int, now: datetime) -> bool:
    """Whether the newest three attempts at a generation, or six, and so on, failed, and the pause is not over."""
    over = ShadowRun.objects.filter(generation=generation_id, status__in=[Status.COMPLETED, Status.FAILED])
    done = over.filter(status=Status.COMPLETED).order_by("-pk").values_list("pk", flat=True).first() or 0
    failed = over.filter(pk__gt=done).aggregate(count=Count("pk"), last=Max("ended"))
    last = failed["last"]
    return last is not None and failed["count"] % PAUSE_AFTER_FAILURES == 0 and now < last + PAUSE


def sweep(now: datetime) -> int:
    """End the runs of workers that are gone, as failed, and their calls. Returns how many runs."""
    ended = 0
    for run in ShadowRun.objects.filter(status=Status.RUNNING, started__lt=now - CLAIM):
        if run.call is not None:
            ModelCall.objects.filter(Q(outcome="") & Q(pk=run.call)).update(outcome=ModelCall.Outcome.INTERRUPTED)
        ended += end(run, Status.FAILED, LOST)
    # And those of runs that were cancelled while their worker died.
    lost = {"purpose": ModelCall.Purpose.SHADOW, "outcome": "", "started__lt": now - CLAIM}
    ModelCall.objects.filter(started__gt=now - CLAIM - SWEPT, **lost).update(outcome=ModelCall.Outcome.INTERRUPTED)
    return ended


def _figures(call: ModelCall | None) -> dict[str, object]:
    if call is None:
        return {}
    return {
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cache_read_tokens": call.cache_read_tokens,
        "cache_write_5m_tokens": call.cache_write_5m_tokens,
        "cache_write_1h_tokens": call.cache_write_1h_tokens,
        "duration_ms": call.total_ms,
        "prices": call.prices,
        "cost": call.cost,
    }
