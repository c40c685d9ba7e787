import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import maxclaw.clock


class Migration(migrations.Migration):
    """Exports of other services: a conversation of theirs may become several threads, one for each branch, so a thread
    says which of them it holds. Files uploaded on the page are rows, so that any worker takes them and goes on after a
    crash."""

    dependencies = [
        ("agent", "0003_imported_conversation"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("file_name", models.CharField(help_text="as the person's machine names it", max_length=255)),
                (
                    "stored_as",
                    models.CharField(help_text="name of the file in the data folder", max_length=64, unique=True),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("cancel_asked", models.BooleanField(default=False)),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="times a worker began and did not come to an end"
                    ),
                ),
                ("lease_token", models.UUIDField(null=True)),
                ("lease_until", models.DateTimeField(null=True)),
                ("done", models.PositiveBigIntegerField(default=0, help_text="bytes read, of the unpacked file")),
                ("total", models.PositiveBigIntegerField(default=0)),
                (
                    "position",
                    models.PositiveBigIntegerField(default=0, help_text="conversations of the file dealt with"),
                ),
                ("report", models.JSONField(default=dict)),
                (
                    "problem",
                    models.TextField(blank=True, default="", help_text="why it failed, a sentence for the person"),
                ),
                ("created", models.DateTimeField(default=maxclaw.clock.now)),
                ("started", models.DateTimeField(null=True)),
                ("finished", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "import",
                "verbose_name_plural": "imports",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("lease_token__isnull", False), ("lease_until__isnull", False), ("state", "running")
                            ),
                            models.Q(
                                models.Q(("state", "running"), _negated=True),
                                ("lease_token__isnull", True),
                                ("lease_until__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="importjob_running_has_lease",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished__isnull", True), ("state__in", ["waiting", "running"])),
                            models.Q(
                                models.Q(("state__in", ["waiting", "running"]), _negated=True),
                                ("finished__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="importjob_end_has_time",
                    ),
                ],
            },
        ),
        migrations.RemoveConstraint(
            model_name="importedconversation",
            name="importedconversation_once_per_owner",
        ),
        migrations.AddField(
            model_name="importedconversation",
            name="branch",
            field=models.CharField(
                blank=True,
                default="",
                help_text="key of the first message of its own, when it is a branch; blank: the conversation itself",
                max_length=30,
            ),
        ),
        migrations.AddField(
            model_name="importedconversation",
            name="format",
            field=models.CharField(
                choices=[("lines", "JSON lines"), ("chatgpt", "ChatGPT"), ("claude", "Claude")],
                default="lines",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="importedconversation",
            constraint=models.UniqueConstraint(
                fields=("owner", "format", "source", "branch"), name="importedconversation_once_per_owner"
            ),
        ),
        migrations.AddField(
            model_name="importjob",
            name="owner",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddIndex(
            model_name="importjob",
            index=models.Index(fields=["owner", "-id"], name="importjob_owner_list"),
        ),
        migrations.AddConstraint(
            model_name="importjob",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["waiting", "running"])),
                fields=("owner",),
                name="importjob_one_open_per_owner",
            ),
        ),
    ]
