"""What was asked of a model, and what it cost.

This app stands below conversations, so a call names thread, generation and messages by plain ids.
"""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from maxclaw import clock


class RequestHeader(models.Model):
    """One row for each distinct header, addressed by the SHA-256 of its exact text.

    The text is the JSON object of model, tools, system, thinking, output_config, tool_choice and betas, as
    `llm.wire.header_text` writes it, without cache anchors.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("request header")
        verbose_name_plural = _("request headers")

    def __str__(self) -> str:
        return self.sha256[:12]


class ModelCall(models.Model):
    """One request made. Its numbers outlive what it speaks of, so that no budget is reset by deleting."""

    class Purpose(models.TextChoices):
        TURN = "turn", _("turn")
        COMPACTION = "compaction", _("compaction")
        ANSWER = "answer", _("search answer")
        STEWARD = "steward", _("steward")
        SHADOW = "shadow", _("shadow")
        COMPARISON = "comparison", _("comparison")
        REVIEW = "review", _("document review")

    class Outcome(models.TextChoices):
        COMPLETE = "complete", _("complete")
        CUT = "cut", _("cut at the output limit")
        INTERRUPTED = "interrupted", _("interrupted")
        TRANSIENT = "transient", _("transient error")
        CREDENTIAL = "credential", _("credential error")
        CONTEXT_FULL = "context_full", _("context full")
        OUTPUT_CAP = "output_cap", _("output cap")
        UNKNOWN = "unknown", _("unknown error")

    purpose = models.CharField(max_length=20, choices=Purpose)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    thread_id = models.BigIntegerField(null=True)
    generation_id = models.BigIntegerField(null=True)
    header = models.ForeignKey(RequestHeader, on_delete=models.PROTECT, related_name="+")
    model = models.CharField(max_length=100, help_text=_("name in the catalog"))
    body_sha256 = models.CharField(max_length=64)
    last_message_id = models.BigIntegerField(null=True)
    answer_message_id = models.BigIntegerField(null=True)
    cut = models.IntegerField(default=0)
    thinking_from = models.BigIntegerField(default=0, help_text=_("thinking is sent of rows with at least this id"))
    anchors = models.JSONField(default=list)
    max_tokens = models.IntegerField()
    attempt = models.SmallIntegerField(default=1)
    estimated_tokens = models.IntegerField(
        null=True, help_text=_("the prompt by general estimate; usage corrects later estimates by it")
    )
    reserved_tokens = models.IntegerField(default=0, help_text=_("estimate that holds its place in the budget"))
    reserved_cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    input_tokens = models.IntegerField(null=True)
    output_tokens = models.IntegerField(null=True)
    cache_read_tokens = models.IntegerField(null=True)
    cache_write_5m_tokens = models.IntegerField(null=True)
    cache_write_1h_tokens = models.IntegerField(null=True)
    started = models.DateTimeField(default=clock.now)
    first_token_ms = models.IntegerField(null=True)
    total_ms = models.IntegerField(null=True)
    prices = models.JSONField(null=True, help_text=_("dollars for each million tokens when the call was made"))
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True)
    outcome = models.CharField(max_length=20, choices=Outcome, blank=True, default="")
    stop_reason = models.CharField(max_length=40, blank=True, default="")
    status_code = models.SmallIntegerField(null=True)
    request_id = models.CharField(max_length=100, blank=True, default="")
    error = models.TextField(blank=True, default="")

    class Meta:
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        indexes = [
            # The newest turn request of a generation: middle anchor, shadow prefix, verify.
            models.Index(fields=["generation_id", "purpose", "-id"], name="modelcall_generation"),
            models.Index(fields=["thread_id", "-id"], name="modelcall_thread"),
            # Budgets sum one day of background calls, of one user and of the server.
            models.Index(fields=["owner", "started"], name="modelcall_owner_day"),
            models.Index(fields=["started"], name="modelcall_day"),
        ]

    def __str__(self) -> str:
        return f"{self.get_purpose_display()} {self.pk}"
