"""Rows of a turn: what waits, what runs, what it called, what clients replay."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from maxclaw import clock
from threads.models import Message, Thread


class Level(models.IntegerChoices):
    """How urgent an item or a frame is. A level preempts only a strictly lower one; nothing exceeds 4."""

    IDLE = 0, _("idle")
    BACKGROUND = 1, _("background")
    TASK = 2, _("task")
    USER = 3, _("user")
    KERNEL = 4, _("kernel")


class TaskFrame(models.Model):
    """One turn. The frames of a thread share its one record; an interrupt suspends the frame below it."""

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        SUSPENDED = "suspended", _("suspended")
        WAITING = "waiting", _("waiting for the user")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    OPEN_STATES = (State.RUNNING, State.SUSPENDED, State.WAITING)

    class EndReason(models.TextChoices):
        ANSWERED = "answered", _("answered")
        STOPPED = "stopped", _("stopped by the user")
        INTERRUPTED = "interrupted", _("interrupted: the server stopped or lost the turn")
        MODEL_ERROR = "model-error", _("the model could not answer")
        CONTEXT_FULL = "context-full", _("the context is full")
        ERROR = "error", _("an error inside the turn")

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="frames")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    level = models.SmallIntegerField(choices=Level, default=Level.USER)
    source = models.CharField(max_length=100, blank=True, default="")
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    steps = models.PositiveSmallIntegerField(default=0, help_text=_("requests made for this turn"))
    overflow_recoveries = models.PositiveSmallIntegerField(default=0)
    stop_asked = models.BooleanField(default=False)
    end_reason = models.CharField(max_length=20, choices=EndReason, blank=True, default="")
    notice = models.TextField(blank=True, default="", help_text=_("the sentence shown when it ended otherwise"))
    created = models.DateTimeField(default=clock.now)
    ended = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        constraints = [
            models.UniqueConstraint(
                fields=["thread"], condition=Q(state="running"), name="frame_one_running_per_thread"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["done", "failed"], ended__isnull=False)
                | (~Q(state__in=["done", "failed"]) & Q(ended__isnull=True)),
                name="frame_end_has_time",
            ),
            models.CheckConstraint(condition=Q(level__gte=0, level__lte=4), name="frame_level_0_to_4"),
        ]
        indexes = [
            models.Index(fields=["thread", "-id"], name="frame_thread_order"),
            models.Index(
                fields=["thread", "-id"],
                name="frame_open",
                condition=Q(state__in=["running", "suspended", "waiting"]),
            ),
        ]

    def __str__(self) -> str:
        return gettext("turn %(number)s") % {"number": self.pk}


class ToolCall(models.Model):
    """One call that a model made, and the one row that answers it."""

    class Status(models.TextChoices):
        PENDING = "pending", _("pending")
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting for the user")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        REFUSED = "refused", _("refused")
        INTERRUPTED = "interrupted", _("interrupted")

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="tool_calls")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    frame = models.ForeignKey(TaskFrame, null=True, on_delete=models.SET_NULL, related_name="tool_calls")
    call_id = models.CharField(max_length=200)
    position = models.PositiveSmallIntegerField(default=0)
    tool = models.CharField(max_length=128)
    arguments = models.JSONField(default=dict)
    status = models.CharField(max_length=12, choices=Status, default=Status.PENDING)
    result = models.OneToOneField(Message, null=True, on_delete=models.CASCADE, related_name="answers_call")
    started = models.DateTimeField(null=True)
    duration_ms = models.IntegerField(null=True)

    class Meta:
        verbose_name = _("tool call")
        verbose_name_plural = _("tool calls")
        constraints = [
            models.UniqueConstraint(fields=["message", "call_id"], name="toolcall_once_per_message"),
        ]
        indexes = [
            models.Index(
                fields=["thread", "id"],
                name="toolcall_open",
                condition=Q(status__in=["pending", "running", "waiting"]),
            ),
        ]

    def __str__(self) -> str:
        return gettext("tool call %(number)s") % {"number": self.pk}


class OverflowEvent(models.Model):
    """One overflow, and what was done about it."""

    frame = models.ForeignKey(TaskFrame, on_delete=models.CASCADE, related_name="overflows")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    source = models.CharField(max_length=40)
    before_tokens = models.IntegerField(null=True)
    after_tokens = models.IntegerField(null=True)
    pruned = models.JSONField(default=list, help_text=_("ids of the rows that left"))
    diagnosis = models.TextField(blank=True, default="")
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("overflow")
        verbose_name_plural = _("overflows")

    def __str__(self) -> str:
        return gettext("overflow %(number)s") % {"number": self.pk}


class InboxItem(models.Model):
    """What waits for a thread's next safe point: the user's words, task results, notices."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        TAKEN = "taken", _("taken into the record")
        WITHDRAWN = "withdrawn", _("withdrawn")

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="inbox")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    level = models.SmallIntegerField(choices=Level, default=Level.USER)
    source = models.CharField(max_length=100, default="user")
    text = models.TextField()
    quote = models.JSONField(null=True)
    client_key = models.CharField(max_length=100, null=True, help_text=_("makes a repeated send the same send"))
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    message = models.ForeignKey(Message, null=True, on_delete=models.SET_NULL, related_name="+")
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("inbox item")
        verbose_name_plural = _("inbox items")
        constraints = [
            models.UniqueConstraint(fields=["thread", "client_key"], name="inboxitem_client_key_once"),
            models.CheckConstraint(condition=Q(level__gte=0, level__lte=4), name="inboxitem_level_0_to_4"),
        ]
        indexes = [
            models.Index(fields=["thread", "id"], name="inboxitem_waiting", condition=Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return gettext("item %(number)s") % {"number": self.pk}


class TurnEvent(models.Model):
    """What happened, numbered without gaps within a thread: what clients replay."""

    class Kind(models.TextChoices):
        MESSAGE = "message", _("message")
        DELTA = "delta", _("more of an answer")
        RESET = "reset", _("answer begun anew")
        TOOL = "tool", _("tool call")
        QUEUED = "queued", _("words queued")
        UNQUEUED = "unqueued", _("words no longer queued")
        STATE = "state", _("state of the turn")
        ANEW = "anew", _("everything anew")
        GONE = "gone", _("conversation deleted")

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="events")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    number = models.BigIntegerField()
    kind = models.CharField(max_length=20, choices=Kind)
    body = models.JSONField()
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("turn event")
        verbose_name_plural = _("turn events")
        constraints = [models.UniqueConstraint(fields=["thread", "number"], name="turnevent_number_once")]
        indexes = [models.Index(fields=["created"], name="turnevent_age")]

    def __str__(self) -> str:
        return f"{self.thread_id}#{self.number}"


class ImportedConversation(models.Model):
    """Which conversation of an imported file a thread holds, so that importing again finds it. Which of its messages
    are there already, the messages themselves say (`meta.import.key`)."""

    class Format(models.TextChoices):
        LINES = "lines", _("JSON lines")
        CHATGPT = "chatgpt", _("ChatGPT")
        CLAUDE = "claude", _("Claude")

    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="imported_from")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    format = models.CharField(max_length=10, choices=Format, default=Format.LINES)
    source = models.CharField(max_length=200, help_text=_("the conversation's id in the imported file"))
    branch = models.CharField(
        max_length=30,
        blank=True,
        default="",
        help_text=_("key of the first message of its own, when it is a branch; blank: the conversation itself"),
    )
    created = models.DateTimeField(default=clock.now)

    class Meta:
        verbose_name = _("imported conversation")
        verbose_name_plural = _("imported conversations")
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "format", "source", "branch"], name="importedconversation_once_per_owner"
            ),
        ]

    def __str__(self) -> str:
        return gettext("imported conversation %(number)s") % {"number": self.pk}


class ImportJob(models.Model):
    """One file that a person uploaded to be imported, and what became of it. A worker claims the row, works, and
    saves how far it came; the file goes when the row ends."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        CANCELLED = "cancelled", _("cancelled")

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    file_name = models.CharField(max_length=255, help_text=_("as the person's machine names it"))
    stored_as = models.CharField(max_length=64, unique=True, help_text=_("name of the file in the data folder"))
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    cancel_asked = models.BooleanField(default=False)
    attempts = models.PositiveSmallIntegerField(
        default=0, help_text=_("times a worker began and did not come to an end")
    )
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    done = models.PositiveBigIntegerField(default=0, help_text=_("bytes read, of the unpacked file"))
    total = models.PositiveBigIntegerField(default=0)
    position = models.PositiveBigIntegerField(default=0, help_text=_("conversations of the file dealt with"))
    report = models.JSONField(default=dict)
    problem = models.JSONField(
        blank=True, default=str, help_text=_("why it failed, a sentence for the person; blank for none")
    )
    created = models.DateTimeField(default=clock.now)
    started = models.DateTimeField(null=True)
    finished = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")
        constraints = [
            models.UniqueConstraint(
                fields=["owner"], condition=Q(state__in=["waiting", "running"]), name="importjob_one_open_per_owner"
            ),
            models.CheckConstraint(
                condition=Q(state="running", lease_token__isnull=False, lease_until__isnull=False)
                | (~Q(state="running") & Q(lease_token__isnull=True, lease_until__isnull=True)),
                name="importjob_running_has_lease",
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "running"], finished__isnull=True)
                | (~Q(state__in=["waiting", "running"]) & Q(finished__isnull=False)),
                name="importjob_end_has_time",
            ),
        ]
        indexes = [models.Index(fields=["owner", "-id"], name="importjob_owner_list")]

    def __str__(self) -> str:
        return gettext("import %(number)s") % {"number": self.pk}
