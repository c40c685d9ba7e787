"""The records: threads, their generations, their messages.

Ids of messages are their place in time: appending takes the thread's row lock, so within a thread they commit
in order. What the database itself refuses is listed in `threads/rules.py`.
"""

import secrets

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from llm.models import RequestHeader
from maxclaw import clock

CHANNEL_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"
CHANNEL_LENGTH = 12


def new_channel() -> str:
    """A short slug that cannot be guessed (60 bits) or misread (no l, o, 0, 1)."""
    return "".join(secrets.choice(CHANNEL_ALPHABET) for _index in range(CHANNEL_LENGTH))


class Thread(models.Model):
    """One conversation, with its level (scope, island, category) and the lease of the turn running on it."""

    class Kind(models.TextChoices):
        MAIN = "main", _("main")
        WEB = "web", _("conversation")
        TASK = "task", _("task")

    class Status(models.TextChoices):
        ACTIVE = "active", _("active")
        ARCHIVED = "archived", _("archived")
        ENDED = "ended", _("ended")

    class Scope(models.TextChoices):
        OPEN = "open", _("open")
        ISOLATED = "isolated", _("isolated")

    class State(models.TextChoices):
        IDLE = "idle", _("idle")
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting for the user")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    channel = models.CharField(max_length=20, unique=True, default=new_channel)
    title = models.CharField(max_length=200, blank=True, default="")
    kind = models.CharField(max_length=10, choices=Kind, default=Kind.WEB)
    status = models.CharField(max_length=10, choices=Status, default=Status.ACTIVE)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children")
    copied_from = models.ForeignKey("Message", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    scope = models.CharField(max_length=10, choices=Scope, default=Scope.OPEN)
    category = models.CharField(max_length=40, blank=True, default="")
    # Restricted, not protected: an island's root names itself, and may go together with all that stand on it.
    island = models.ForeignKey("self", null=True, blank=True, on_delete=models.RESTRICT, related_name="+")
    model = models.CharField(
        max_length=100,
        blank=True,
        default="",
        help_text=_("the model that the user picked; blank: the router's"),
    )
    state = models.CharField(max_length=10, choices=State, default=State.IDLE)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_holder = models.CharField(max_length=100, blank=True, default="")
    created = models.DateTimeField(default=clock.now)
    updated = models.DateTimeField(default=clock.now, help_text=_("when something was last said"))
    deleted = models.DateTimeField(
        null=True, blank=True, help_text=_("out of sight since then; erased when the time for undoing it has passed")
    )

    # The transaction in which this object's row was locked, see `threads.transcript.lock_thread`.
    locked_in: object | None = None
    # The generation that `threads.lifecycle.create_thread` made this object with; None where it was read.
    begun_with: "Generation | None" = None

    class Meta:
        verbose_name = _("conversation")
        verbose_name_plural = _("conversations")
        constraints = [
            models.UniqueConstraint(fields=["owner"], condition=Q(kind="main"), name="thread_one_main_per_owner"),
            models.CheckConstraint(
                condition=Q(scope="open", island__isnull=True) | Q(scope="isolated", island__isnull=False),
                name="thread_isolated_has_island",
            ),
            models.CheckConstraint(
                condition=Q(state="running", lease_token__isnull=False, lease_until__isnull=False)
                | (~Q(state="running") & Q(lease_token__isnull=True, lease_until__isnull=True)),
                name="thread_running_has_lease",
            ),
            # What composite foreign keys of rows that carry their thread's owner refer to.
            models.UniqueConstraint(fields=["id", "owner"], name="thread_id_with_owner"),
        ]
        permissions = [("read_private", _("Can read the private text of conversations"))]
        indexes = [
            models.Index(fields=["owner", "status", "-updated"], name="thread_owner_list"),
            models.Index(fields=["lease_until"], name="thread_lease", condition=Q(state="running")),
            models.Index(fields=["deleted"], name="thread_deleted", condition=Q(deleted__isnull=False)),
        ]

    def __str__(self) -> str:
        # Not the title: it is the owner's words, and this stands in logs and the admin.
        return self.channel


class Generation(models.Model):
    """A stretch of a thread that one context holds: opens with a frozen context, ends with a summary."""

    class EndReason(models.TextChoices):
        THRESHOLD = "threshold", _("the context filled up")
        IDLE = "idle", _("the thread rested")
        MANUAL = "manual", _("the user asked")
        REWIND = "rewind", _("rewound")
        IMPORT = "import", _("imported")
        CLOSED = "closed", _("the thread was closed")
        FORGOTTEN = "forgotten", _("it was briefed with something that was to be forgotten")

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="generations")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    ordinal = models.PositiveIntegerField()
    opening = models.TextField(
        null=True,
        help_text=_("exact JSON of the opening context's content blocks; null until it is rendered"),
    )
    header = models.ForeignKey(RequestHeader, null=True, on_delete=models.PROTECT, related_name="+")
    cut = models.IntegerField(default=0, help_text=_("prunes, rewinds and thinking drops so far"))
    thinking_from = models.BigIntegerField(default=0, help_text=_("rows below this id are sent without thinking"))
    summary = models.TextField(blank=True, default="")
    summary_before = models.TextField(
        blank=True, default="", help_text=_("the summary that its opening holds, of all that was said before it")
    )
    standing = models.JSONField(
        default=list, help_text=_("instructions that its opening carries word for word: text and message id of each")
    )
    started = models.DateTimeField(default=clock.now)
    ended = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=20, choices=EndReason, blank=True, default="")

    class Meta:
        verbose_name = _("generation")
        verbose_name_plural = _("generations")
        constraints = [
            models.UniqueConstraint(fields=["thread", "ordinal"], name="generation_ordinal_once"),
            models.UniqueConstraint(
                fields=["thread"], condition=Q(ended__isnull=True), name="generation_one_live_per_thread"
            ),
            models.CheckConstraint(condition=Q(cut__gte=0), name="generation_cut_counts_up"),
            models.UniqueConstraint(fields=["id", "thread"], name="generation_id_with_thread"),
            models.UniqueConstraint(fields=["id", "owner"], name="generation_id_with_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.thread_id}/{self.ordinal}"


class Message(models.Model):
    """One row of the record. `wire` is what a model saw or said, byte for byte; `text` is for people.

    Life of an assistant row: appended with neither when its answer starts, text growing only in turn events;
    both are set once, when the answer ends. Every other row has both from the start.
    """

    class Role(models.TextChoices):
        USER = "user", _("user")
        ASSISTANT = "assistant", _("assistant")
        TOOL = "tool", _("tool result")
        EVENT = "event", _("event")

    class LeftBecause(models.TextChoices):
        COLD = "cold", _("moved out of the context")
        SUPERSEDED = "superseded", _("rewound")

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="messages")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(max_length=10, choices=Role)
    text = models.TextField(blank=True, default="")
    search_text = models.TextField(blank=True, default="")
    wire = models.TextField(null=True, help_text=_("exact JSON of the content blocks; null: not sent"))
    model = models.CharField(
        max_length=100, blank=True, default="", help_text=_("catalog name of the model that said it")
    )
    tool_call_id = models.CharField(max_length=200, blank=True, default="")
    is_error = models.BooleanField(default=False)
    model_visible = models.BooleanField(default=True)
    left_at_cut = models.IntegerField(null=True)
    left_because = models.CharField(max_length=12, choices=LeftBecause, blank=True, default="")
    copied_from = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="copies")
    meta = models.JSONField(default=dict)
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        constraints = [
            models.CheckConstraint(
                condition=Q(left_at_cut__isnull=True, left_because="")
                | (Q(left_at_cut__isnull=False) & ~Q(left_because="")),
                name="message_left_says_why",
            ),
            models.CheckConstraint(
                condition=Q(copied_from__isnull=True) | ~Q(copied_from=F("id")),
                name="message_no_copy_of_itself",
            ),
            # What composite foreign keys of rows that name a message of the same owner refer to.
            models.UniqueConstraint(fields=["id", "owner"], name="message_id_with_owner"),
        ]
        indexes = [
            models.Index(fields=["thread", "id"], name="message_thread_order"),
            models.Index(fields=["generation", "id"], name="message_generation_order"),
            # Few rows carry a quote; who looks through those does not look through all.
            models.Index(fields=["owner", "id"], name="message_with_quote", condition=Q(meta__has_key="quote")),
        ]

    def __str__(self) -> str:
        return f"m:{self.pk}"


class MessageGrams(models.Model):
    """What a long message's `search_text` is made of, see `threads.message_grams`. Written with the message, by
    the module that writes messages; ids alone are read from it."""

    message = models.OneToOneField(Message, primary_key=True, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+")
    grams = ArrayField(models.IntegerField(), help_text=_("the thread's as the first one, below zero"))

    class Meta:
        # No pending list: it makes an insert cheaper and every search behind it slower.
        indexes = [GinIndex(fields=["grams"], name="messagegrams_grams", fastupdate=False)]

    def __str__(self) -> str:
        return f"grams of m:{self.message_id}"


class PrivateReading(models.Model):
    """That a staff member read a person's private text: who, when and what, never the text. Rows outlive what they
    speak of, and then say no more than that somebody read something."""

    class What(models.TextChoices):
        CONVERSATION = "conversation", _("part of a conversation")
        MESSAGE = "message", _("message")
        GENERATION = "generation", _("opening and summary of a generation")
        TURN = "turn", _("turn")
        TOOL_CALL = "tool-call", _("tool call")
        INBOX_ITEM = "inbox-item", _("waiting item")
        TURN_EVENT = "turn-event", _("turn event")
        OVERFLOW = "overflow", _("overflow")
        MODEL_CALL = "model-call", _("error of a model call")
        FACT = "fact", _("fact")
        FACT_LOG = "fact-log", _("reason in the memory log")
        PROPOSAL = "proposal", _("proposal for memory")

    reader = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("read by")
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("owner")
    )
    thread = models.ForeignKey(
        Thread, null=True, on_delete=models.SET_NULL, related_name="+", verbose_name=_("conversation")
    )
    what = models.CharField(_("what"), max_length=20, choices=What)
    first_id = models.BigIntegerField(_("first row"), null=True, help_text=_("id of the first row that was shown"))
    last_id = models.BigIntegerField(_("last row"), null=True, help_text=_("id of the last row that was shown"))
    read_at = models.DateTimeField(_("read at"), default=clock.now)

    class Meta:
        verbose_name = _("reading of private text")
        verbose_name_plural = _("readings of private text")
        indexes = [
            models.Index(fields=["owner", "-id"], name="privatereading_owner"),
            models.Index(fields=["thread"], name="privatereading_thread"),
        ]

    def __str__(self) -> str:
        return gettext("reading %(number)s") % {"number": self.pk}
