"""What is remembered of a person: facts, the words and outcomes that prove them, and what became of them.

A fact is never edited: a new version supersedes it. Where it may be seen it says itself (`scope`, `island`,
`category`, named as on a thread, so that `threads.visibility.thread_filter` reads both). What the database itself
refuses is listed in `memory/rules.py`.
"""

from typing import TypeAlias

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from maxclaw import clock
from threads.models import Generation, Message, Thread

NO_ISLAND = Q(scope=Thread.Scope.OPEN, island__isnull=True)
ON_ISLAND = Q(scope=Thread.Scope.ISOLATED, island__isnull=False)
ONE_SOURCE = Q(message__isnull=True, generation__isnull=False) | Q(message__isnull=False, generation__isnull=True)


class EvidenceKind(models.TextChoices):
    """How a piece of evidence proves something."""

    MAX_STATED = "max-stated", _("the person said so")
    MAX_ACCEPTED = "max-accepted", _("the person accepted it")
    TOOL_VERIFIED = "tool-verified", _("a tool verified it")
    OBSERVED_OUTCOME = "observed-outcome", _("an outcome showed it")


def evidence_constraints(name: str, of: str) -> list[models.BaseConstraint]:
    """What holds for evidence, whatever it proves: `name` begins the constraints' names, `of` is the field that says
    what it proves."""
    return [
        models.CheckConstraint(condition=ONE_SOURCE, name=f"{name}_one_source"),
        models.CheckConstraint(condition=Q(kind__in=EvidenceKind.values), name=f"{name}_of_known_kind"),
        models.CheckConstraint(
            condition=Q(kind="max-accepted", accepted_by__isnull=False, message__isnull=False)
            | (~Q(kind="max-accepted") & Q(accepted_by__isnull=True)),
            name=f"{name}_accepted_says_where",
        ),
        models.UniqueConstraint(
            fields=[of, "kind", "message", "generation", "accepted_by"], nulls_distinct=False, name=f"{name}_once"
        ),
    ]


class Fact(models.Model):
    """One thing that is remembered, with what it applies to and its tone."""

    class Kind(models.TextChoices):
        ABOUT_USER = "about-user", _("about the person")
        EVENT = "event", _("event with its reason")
        POINTER = "pointer", _("pointer to a document")

    class Aspect(models.TextChoices):
        FACT = "fact", _("fact")
        PREFERENCE = "preference", _("preference")
        DECISION = "decision", _("decision")
        CORRECTION = "correction", _("correction")
        IDENTITY = "identity", _("identity")

    class Tone(models.TextChoices):
        REMARK = "remark", _("passing remark")
        DECISION = "decision", _("decision")

    class Status(models.TextChoices):
        ACTIVE = "active", pgettext_lazy("fact", "active")
        SUPERSEDED = "superseded", _("superseded")
        RETIRED = "retired", _("retired")

    class Writer(models.TextChoices):
        STEWARD = "steward", _("steward")
        REMEMBER = "remember", _("on request")
        SHADOW = "shadow", _("shadow")
        IMPORT = "import", _("import")
        PERSON = "person", _("the person")
        STAFF = "staff", _("staff")

    # Writers who answer for their words themselves.
    BY_HAND = (Writer.PERSON, Writer.STAFF)

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    text = models.TextField()
    kind = models.CharField(max_length=12, choices=Kind)
    aspect = models.CharField(max_length=12, choices=Aspect, blank=True, default="")
    applies_to = models.TextField(blank=True, default="", help_text=_("blank: in general"))
    tone = models.CharField(max_length=10, choices=Tone, default=Tone.REMARK)
    project = models.CharField(max_length=200, blank=True, default="")
    scope = models.CharField(max_length=10, choices=Thread.Scope, default=Thread.Scope.OPEN)
    # An island's root hands its island over before it goes, so what stays on the island keeps its facts.
    island = models.ForeignKey(Thread, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    category = models.CharField(max_length=40, blank=True, default="")
    status = models.CharField(max_length=12, choices=Status, default=Status.ACTIVE)
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="supersedes"
    )
    writer = models.CharField(max_length=10, choices=Writer)
    legacy = models.BooleanField(default=False, help_text=_("imported without evidence"))
    graduated_rule = models.TextField(blank=True, default="", help_text=_("the project's rule that it became"))
    graduated_commit = models.CharField(max_length=64, blank=True, default="")
    why = models.TextField(blank=True, default="", help_text=_("why it was retired, replaced or corrected"))
    fingerprint = models.CharField(max_length=64, help_text=_("the same for the same words, however written"))
    embedding = VectorField(null=True, blank=True)
    embedding_model = models.CharField(max_length=200, blank=True, default="")
    created = models.DateTimeField(default=clock.now)
    changed = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("fact")
        verbose_name_plural = _("facts")
        constraints = [
            models.UniqueConstraint(fields=["id", "owner"], name="fact_id_with_owner"),
            models.CheckConstraint(condition=NO_ISLAND | ON_ISLAND, name="fact_isolated_has_island"),
            models.CheckConstraint(
                condition=(Q(kind="about-user") & ~Q(aspect="")) | (~Q(kind="about-user") & Q(aspect="")),
                name="fact_about_user_has_aspect",
            ),
            models.CheckConstraint(
                condition=Q(
                    kind__in=["about-user", "event", "pointer"],
                    aspect__in=["", "fact", "preference", "decision", "correction", "identity"],
                    tone__in=["remark", "decision"],
                    status__in=["active", "superseded", "retired"],
                ),
                name="fact_of_known_kind",
            ),
            # Newer than what it supersedes, so no circle can close, whoever races.
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True) | Q(superseded_by__gt=F("id")), name="fact_superseded_by_newer"
            ),
            models.CheckConstraint(
                condition=Q(superseded_by__isnull=True) | Q(status="superseded"), name="fact_superseded_says_so"
            ),
            models.CheckConstraint(
                condition=Q(embedding__isnull=True, embedding_model="")
                | (Q(embedding__isnull=False) & ~Q(embedding_model="")),
                name="fact_embedding_names_its_model",
            ),
            models.CheckConstraint(condition=~Q(text=""), name="fact_has_text"),
        ]
        indexes = [
            models.Index(fields=["owner", "status", "-id"], name="fact_owner_list"),
            models.Index(fields=["owner", "fingerprint"], name="fact_fingerprint"),
            # What a search reads first: which models' vectors a person's facts have.
            models.Index(fields=["owner", "status", "embedding_model"], name="fact_models_of_owner"),
            # What waits for its vector, whatever the model: looked through by the tick.
            models.Index(fields=["embedding_model"], name="fact_active_by_model", condition=Q(status="active")),
        ]

    def __str__(self) -> str:
        # Not the text: it is the person's own, and this stands in logs and the admin.
        return f"f:{self.pk}"


class FactEvidence(models.Model):
    """What proves a fact: a message, or a whole generation."""

    Kind: TypeAlias = EvidenceKind

    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="evidence", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=20, choices=Kind)
    message = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="+")
    generation = models.ForeignKey(Generation, null=True, on_delete=models.CASCADE, related_name="+")
    accepted_by = models.ForeignKey(
        Message, null=True, on_delete=models.CASCADE, related_name="+", help_text=_("where the person accepted it")
    )
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("evidence of a fact")
        verbose_name_plural = _("evidence of facts")
        constraints = evidence_constraints("factevidence", of="fact")

    def __str__(self) -> str:
        return f"evidence {self.pk} of f:{self.fact_id}"


class FactUse(models.Model):
    """That a fact was found by a search (`message`: the row that asked) or opened a generation with others."""

    class How(models.TextChoices):
        FOUND = "found", _("found by a search")
        BRIEFED = "briefed", _("in an opening context")

    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="uses", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    how = models.CharField(max_length=10, choices=How)
    message = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="+")
    generation = models.ForeignKey(Generation, null=True, on_delete=models.CASCADE, related_name="+")
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("use of a fact")
        verbose_name_plural = _("uses of facts")
        constraints = [
            models.CheckConstraint(condition=ONE_SOURCE, name="factuse_one_source"),
            models.UniqueConstraint(
                fields=["fact", "how", "message", "generation"], nulls_distinct=False, name="factuse_once"
            ),
        ]

    def __str__(self) -> str:
        return f"use {self.pk} of f:{self.fact_id}"


class ReadingPause(models.Model):
    """Until when the steward reads nothing of a person's: the budget of a day is spent, and a page that found no room
    would find none at the next minute either."""

    owner = models.OneToOneField(settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()

    class Meta:
        verbose_name = _("pause of the steward")
        verbose_name_plural = _("pauses of the steward")

    def __str__(self) -> str:
        return f"pause of {self.owner_id}"


class Episode(models.Model):
    """One reading of a stretch of a conversation by the steward: up to message `through_seq` of a generation."""

    class Outcome(models.TextChoices):
        RUNNING = "running", _("being read")
        DONE = "done", _("read")
        FAILED = "failed", _("failed")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+")
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="+")
    through_seq = models.BigIntegerField(help_text=_("id of the last message that was read"))
    call = models.BigIntegerField(null=True, help_text=_("id of the model call, where one was made"))
    outcome = models.CharField(max_length=10, choices=Outcome, default=Outcome.DONE)
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("episode")
        verbose_name_plural = _("episodes")
        constraints = [
            models.UniqueConstraint(fields=["id", "owner"], name="episode_id_with_owner"),
            models.UniqueConstraint(
                fields=["thread"], condition=Q(outcome="running"), name="episode_one_running_per_thread"
            ),
        ]
        indexes = [
            models.Index(fields=["generation", "-id"], name="episode_generation"),
            # How far a conversation was read.
            models.Index(fields=["thread", "-through_seq"], name="episode_thread_reached", condition=Q(outcome="done")),
        ]

    def __str__(self) -> str:
        return gettext("episode %(number)s") % {"number": self.pk}


class Digest(models.Model):
    """That a message was read, in which episode: once, ever."""

    message = models.OneToOneField(Message, on_delete=models.CASCADE, related_name="digest")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    episode = models.ForeignKey(Episode, on_delete=models.CASCADE, related_name="digests")

    class Meta:
        verbose_name = _("digest")
        verbose_name_plural = _("digests")

    def __str__(self) -> str:
        return f"digest of m:{self.message_id}"


class FactLog(models.Model):
    """What was done to facts by a person or a writer, and why. Ids are plain: an entry outlives the facts."""

    class Action(models.TextChoices):
        RETIRE = "retire", _("retired")
        RESTORE = "restore", _("restored")
        MERGE = "merge", _("merged")
        CORRECT = "correct", _("corrected")
        REPLACE = "replace", _("replaced")
        FORGET = "forget", _("forgotten")
        TRIAGE = "triage", _("looked through")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    writer = models.CharField(max_length=10, choices=Fact.Writer)
    action = models.CharField(max_length=10, choices=Action)
    reason = models.TextField(blank=True, default="")
    before = ArrayField(models.BigIntegerField(), default=list, help_text=_("ids of the facts that it was done to"))
    after = ArrayField(models.BigIntegerField(), default=list, help_text=_("ids of the facts that came of it"))
    # When the words were said that led to it, where a model read them: it may read old ones late.
    as_of = models.DateTimeField(_("as of"), null=True, blank=True, editable=False)
    # Marks of forgotten facts (`memory/forgotten.py`), so that neither the same file nor older words bring one back.
    forgotten = ArrayField(
        models.CharField(max_length=64), verbose_name=_("forgotten"), default=list, blank=True, editable=False
    )
    # What taught forgotten facts: it proves nothing more.
    forgotten_messages = ArrayField(
        models.BigIntegerField(), verbose_name=_("messages that taught it"), default=list, blank=True, editable=False
    )
    forgotten_generations = ArrayField(
        models.BigIntegerField(), verbose_name=_("contexts that taught it"), default=list, blank=True, editable=False
    )
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("memory log entry")
        verbose_name_plural = _("memory log")
        indexes = [models.Index(fields=["owner", "-id"], name="factlog_owner_list")]

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.pk}"
