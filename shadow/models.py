"""What shadow turns keep: from where each conversation is read, each run, and what it proposed.

A shadow run asks a conversation's own context what is worth remembering. It writes runs and proposals and, while the
steward writes memory, never a fact. What the database itself refuses is listed in `shadow/rules.py`.
"""

from typing import TypeAlias

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from maxclaw import clock
from memory.fact_models import evidence_constraints
from memory.models import Fact, FactEvidence
from threads.models import Generation, Message, Thread


class ShadowActivation(models.Model):
    """When shadows began: the greatest message id of that moment. A single row, written once."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    through_seq = models.BigIntegerField(help_text=_("greatest message id when shadows began"))
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("beginning of shadow turns")
        verbose_name_plural = _("beginning of shadow turns")
        constraints = [models.CheckConstraint(condition=Q(id=1), name="shadowactivation_single_row")]

    def __str__(self) -> str:
        return f"from m:{self.through_seq}"


class ReadFrom(models.TextChoices):
    """From where a conversation was read when its cursor was made."""

    STEWARD = "steward", _("where the steward was")
    ENABLED = "enabled", _("where the conversation was")


class ShadowCursor(models.Model):
    """That a conversation is read by shadows, and what was taken as read when it began to be."""

    Initialization: TypeAlias = ReadFrom

    thread = models.OneToOneField(Thread, primary_key=True, on_delete=models.CASCADE, related_name="shadow_cursor")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    initialization = models.CharField(max_length=10, choices=Initialization)
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("shadow cursor")
        verbose_name_plural = _("shadow cursors")
        constraints = [
            models.CheckConstraint(
                condition=Q(initialization__in=ReadFrom.values), name="shadowcursor_of_known_initialization"
            )
        ]

    def __str__(self) -> str:
        return f"cursor of {self.thread_id}"


class ShadowBaseline(models.Model):
    """Up to which message a generation counts as read before any run of it. Written once: from then on completed runs
    alone move on."""

    generation = models.OneToOneField(
        Generation, primary_key=True, on_delete=models.CASCADE, related_name="shadow_baseline"
    )
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    baseline = models.BigIntegerField(help_text=_("id of the last message taken as read; 0: none"))
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("shadow baseline")
        verbose_name_plural = _("shadow baselines")
        constraints = [models.CheckConstraint(condition=Q(baseline__gte=0), name="shadowbaseline_not_negative")]

    def __str__(self) -> str:
        return f"baseline of {self.generation_id}"


class RunReason(models.TextChoices):
    """What a run is queued for."""

    IDLE_OR_ENDED = "idle-or-ended", _("the conversation rested or ended")
    TURN_BOUNDARY = "turn-boundary", _("a turn ended")
    TURN_FAILED = "turn-failed", _("a turn failed")
    WAITING_MAX = "waiting-max", _("a question card is open")
    TASK_ENDED = "task-ended", _("a task ended")
    GENERATION_ENDED = "generation-ended", _("a generation ended")
    THREAD_ARCHIVED = "thread-archived", _("the conversation was archived")
    THREAD_ENDED = "thread-ended", _("the conversation ended")


class RunPath(models.TextChoices):
    """Whether a question follows the conversation's own last request."""

    HOT = "hot", _("hot")
    COLD = "cold", _("cold")


class WhyCold(models.TextChoices):
    """Why it does not."""

    NO_PREFIX = "no-prefix", _("there is no request to follow")
    INCOMPLETE_ANSWER = "incomplete-answer", _("the last answer was cut short")
    EARLIER_CUT = "earlier-cut", _("words left the context since")
    EXPIRED = "expired", _("the cache ran out")
    NOTHING_CACHED = "nothing-cached", _("the provider cached nothing")
    TOOL_MISSING = "tool-missing", _("the request had no tool for proposals")
    MODEL_CHANGED = "model-changed", _("model, effort or thinking changed")
    CATEGORY_CHANGED = "category-changed", _("the model may not read this category")
    NO_ROOM = "no-room", _("the model's window has no room for a page")
    DIGEST_DIFFERS = "digest-differs", _("the record gives another request than was sent")


class RunStatus(models.TextChoices):
    """How far a run is."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    COMPLETED = "completed", _("completed")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")


class ShadowRun(models.Model):
    """One question to a shadow: queued by a trigger, run by a worker. `path_reason` says why it was not hot; the
    figures are of its newest call, whose id is `call`; those of a run that was cancelled come when its request ends."""

    Reason: TypeAlias = RunReason
    Path: TypeAlias = RunPath
    PathReason: TypeAlias = WhyCold
    Status: TypeAlias = RunStatus

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="shadow_runs")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    generation = models.ForeignKey(Generation, null=True, on_delete=models.CASCADE, related_name="shadow_runs")
    reason = models.CharField(max_length=20, choices=Reason)
    path = models.CharField(max_length=4, choices=Path, blank=True, default="")
    path_reason = models.CharField(max_length=20, choices=PathReason, blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="", help_text=_("name in the catalog"))
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    not_before = models.DateTimeField(_("not before"), null=True, help_text=_("nothing can be asked before"))
    error = models.CharField(
        max_length=200, blank=True, default="", help_text=_("why it waits, failed or was cancelled")
    )
    through_seq = models.BigIntegerField(null=True, help_text=_("id of the last message that was read"))
    call = models.BigIntegerField(null=True, help_text=_("id of the model call"))
    input_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)
    cache_read_tokens = models.IntegerField(null=True)
    cache_write_5m_tokens = models.IntegerField(null=True)
    cache_write_1h_tokens = models.IntegerField(null=True)
    duration_ms = models.IntegerField(null=True, help_text=_("of its calls"))
    prices = models.JSONField(null=True, help_text=_("dollars for each million tokens when the call was made"))
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    created = models.DateTimeField(default=clock.now)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("shadow run")
        verbose_name_plural = _("shadow runs")
        constraints = [
            models.UniqueConstraint(
                fields=["thread"], condition=Q(status="queued"), name="shadowrun_one_queued_per_thread"
            ),
            models.UniqueConstraint(
                fields=["thread"], condition=Q(status="running"), name="shadowrun_one_running_per_thread"
            ),
            models.CheckConstraint(
                condition=Q(
                    status__in=RunStatus.values,
                    reason__in=RunReason.values,
                    path__in=["", *RunPath.values],
                    path_reason__in=["", *WhyCold.values],
                ),
                name="shadowrun_of_known_kinds",
            ),
            models.CheckConstraint(
                condition=Q(not_before__isnull=True) | Q(status="queued"), name="shadowrun_waits_while_queued"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["queued", "running"], ended__isnull=True)
                | (~Q(status__in=["queued", "running"]) & Q(ended__isnull=False)),
                name="shadowrun_end_has_time",
            ),
            models.CheckConstraint(
                condition=Q(path="cold") & ~Q(path_reason="") | (~Q(path="cold") & Q(path_reason="")),
                name="shadowrun_cold_says_why",
            ),
            models.CheckConstraint(
                condition=~Q(status__in=["running", "completed"])
                | (Q(generation__isnull=False, through_seq__isnull=False, started__isnull=False) & ~Q(path="")),
                name="shadowrun_reads_something",
            ),
            models.UniqueConstraint(fields=["id", "thread", "owner"], name="shadowrun_id_with_thread_and_owner"),
        ]
        indexes = [
            models.Index(fields=["generation", "-id"], name="shadowrun_generation"),
            models.Index(fields=["id"], name="shadowrun_open", condition=Q(status__in=["queued", "running"])),
            models.Index(fields=["created"], name="shadowrun_window"),
        ]

    def __str__(self) -> str:
        return gettext("shadow run %(number)s") % {"number": self.pk}


class ShadowFactProposal(models.Model):
    """One item that a shadow proposed. What did not hold is kept with its `validation_error`, since how often a model
    invents evidence, and on what, is part of what is compared; of such an item `raw` is what counts."""

    run = models.ForeignKey(ShadowRun, on_delete=models.CASCADE, related_name="proposals")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    position = models.PositiveSmallIntegerField(help_text=_("place in what the model proposed, from 0"))
    text = models.TextField(blank=True, default="")
    kind = models.CharField(max_length=12, choices=Fact.Kind, blank=True, default="")
    aspect = models.CharField(max_length=12, choices=Fact.Aspect, blank=True, default="")
    applies_to = models.TextField(blank=True, default="", help_text=_("blank: in general"))
    tone = models.CharField(max_length=10, choices=Fact.Tone, blank=True, default="")
    replaces_fact = models.ForeignKey(Fact, null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    replaces_proposal = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="replaced_by"
    )
    names_fact = models.BigIntegerField(
        null=True, blank=True, help_text=_("id of the fact that the item says it replaces, there or not")
    )
    names_proposal = models.BigIntegerField(
        null=True, blank=True, help_text=_("id of the proposal that the item says it replaces, there or not")
    )
    fingerprint = models.CharField(max_length=64, blank=True, default="", help_text=_("the same for the same words"))
    validation_error = models.TextField(blank=True, default="", help_text=_("why it does not hold; blank: it does"))
    raw = models.JSONField(help_text=_("the item as the model wrote it"))
    category = models.CharField(max_length=40, blank=True, default="", help_text=_("the conversation's"))
    fact = models.ForeignKey(
        Fact, null=True, blank=True, on_delete=models.SET_NULL, related_name="+", help_text=_("what it became")
    )
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("shadow proposal")
        verbose_name_plural = _("shadow proposals")
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="proposal_place_once"),
            models.UniqueConstraint(fields=["id", "owner"], name="proposal_id_with_owner"),
            models.UniqueConstraint(fields=["id", "thread"], name="proposal_id_with_thread"),
            models.CheckConstraint(
                condition=~Q(validation_error="")
                | (~Q(text="") & ~Q(kind="") & ~Q(tone="") & (Q(kind="about-user") ^ Q(aspect=""))),
                name="proposal_that_holds_is_whole",
            ),
            models.CheckConstraint(
                condition=~Q(validation_error="")
                | Q(
                    kind__in=["", *Fact.Kind.values],
                    aspect__in=["", *Fact.Aspect.values],
                    tone__in=["", *Fact.Tone.values],
                ),
                name="proposal_that_holds_is_of_known_kinds",
            ),
            models.CheckConstraint(
                condition=Q(replaces_fact__isnull=True) | Q(replaces_proposal__isnull=True),
                name="proposal_replaces_one",
            ),
            models.CheckConstraint(
                condition=Q(fact__isnull=True) | Q(validation_error=""), name="proposal_becomes_a_fact_if_it_holds"
            ),
        ]
        indexes = [
            models.Index(fields=["thread", "-id"], name="proposal_thread_order"),
            models.Index(fields=["owner", "fingerprint"], name="proposal_fingerprint"),
        ]

    def __str__(self) -> str:
        # Not the text: it is the person's own, and this stands in logs and the admin.
        return f"p:{self.pk}"


class ShadowProposalEvidence(models.Model):
    """What a proposal cites, of what there is: what was invented stands in the proposal's `raw` alone."""

    proposal = models.ForeignKey(ShadowFactProposal, on_delete=models.CASCADE, related_name="evidence")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20, choices=FactEvidence.Kind)
    message = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="+")
    generation = models.ForeignKey(Generation, null=True, on_delete=models.CASCADE, related_name="+")
    accepted_by = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name = _("evidence of a shadow proposal")
        verbose_name_plural = _("evidence of shadow proposals")
        constraints = evidence_constraints("proposalevidence", of="proposal")

    def __str__(self) -> str:
        return f"evidence {self.pk} of p:{self.proposal_id}"


class ProposalReview(models.Model):
    """What staff say of a proposal: one verdict each, the newest."""

    class Verdict(models.TextChoices):
        CORRECT = "correct", _("correct")
        WRONG = "wrong", _("wrong")
        DUPLICATE = "duplicate", _("duplicate")
        OUT_OF_SCOPE = "out-of-scope", _("out of scope")

    proposal = models.OneToOneField(ShadowFactProposal, on_delete=models.CASCADE, related_name="review")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    reviewer = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    verdict = models.CharField(max_length=15, choices=Verdict)
    note = models.TextField(blank=True, default="")
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("verdict on a proposal")
        verbose_name_plural = _("verdicts on proposals")
        constraints = [
            models.CheckConstraint(
                condition=Q(verdict__in=["correct", "wrong", "duplicate", "out-of-scope"]),
                name="proposalreview_known_verdict",
            ),
        ]

    def __str__(self) -> str:
        return gettext("verdict %(number)s on %(proposal)s") % {"number": self.pk, "proposal": f"p:{self.proposal_id}"}
