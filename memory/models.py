"""What is remembered (`memory.fact_models`), and what is kept beside conversations so that old words are found again by
what they mean."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

from maxclaw import clock
from memory.fact_models import Digest, Episode, Fact, FactEvidence, FactLog, FactUse, ReadingPause
from threads.models import Message, Thread

__all__ = [
    "Digest",
    "EmbeddedThread",
    "Episode",
    "Fact",
    "FactEvidence",
    "FactLog",
    "FactUse",
    "MessageChunk",
    "ReadingPause",
]


class MessageChunk(models.Model):
    """A stretch of one message with its vector: characters `offset` to `offset + length` of `Message.text`, never the
    words themselves. A vector belongs to the model that made it, and is compared with that model's alone."""

    # The constraint and the indexes below serve these three as well.
    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    offset = models.PositiveIntegerField()
    length = models.PositiveIntegerField()
    model = models.CharField(max_length=200, help_text=_("name of the embedding model that made the vector"))
    # Models differ in their number of dimensions, so the column has none.
    embedding = VectorField()

    class Meta:
        verbose_name = _("message chunk")
        verbose_name_plural = _("message chunks")
        constraints = [
            models.UniqueConstraint(fields=["message", "offset", "model"], name="messagechunk_once_per_model"),
            models.CheckConstraint(condition=models.Q(length__gt=0), name="messagechunk_has_text"),
        ]
        indexes = [
            # Vectors are scanned whole, by thread or by owner: exact, and fast enough.
            models.Index(fields=["thread", "model"], name="messagechunk_thread"),
            models.Index(fields=["owner", "model"], name="messagechunk_owner"),
        ]

    def __str__(self) -> str:
        return f"m:{self.message_id}+{self.offset}"


class EmbeddedThread(models.Model):
    """How far one thread's messages have been embedded by one model, and who is at it. Ids commit in order within a
    thread, so every row up to `through_id` was looked at."""

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+", db_index=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    model = models.CharField(max_length=200)
    through_id = models.BigIntegerField(default=0)
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    updated = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("embedded thread")
        verbose_name_plural = _("embedded threads")
        constraints = [
            models.UniqueConstraint(fields=["thread", "model"], name="embeddedthread_once_per_model"),
            models.CheckConstraint(
                condition=models.Q(claim__isnull=True, claimed_until__isnull=True)
                | models.Q(claim__isnull=False, claimed_until__isnull=False),
                name="embeddedthread_claim_ends",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id} by {self.model}"
