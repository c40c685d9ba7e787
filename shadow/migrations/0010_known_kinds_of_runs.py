from django.db import migrations, models


class Migration(migrations.Migration):
    """Runs and cursors are of kinds that there are, and a queued run may wait for a moment."""

    dependencies = [
        ("shadow", "0009_evidence_fits_its_kind"),
    ]

    operations = [
        migrations.AddField(
            model_name="shadowrun",
            name="not_before",
            field=models.DateTimeField(help_text="nothing can be asked before", null=True, verbose_name="not before"),
        ),
        migrations.AlterField(
            model_name="shadowrun",
            name="error",
            field=models.CharField(
                blank=True, default="", help_text="why it waits, failed or was cancelled", max_length=200
            ),
        ),
        migrations.AddConstraint(
            model_name="shadowcursor",
            constraint=models.CheckConstraint(
                condition=models.Q(("initialization__in", ["steward", "enabled"])),
                name="shadowcursor_of_known_initialization",
            ),
        ),
        migrations.AddConstraint(
            model_name="shadowrun",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("path__in", ["", "hot", "cold"]),
                    (
                        "path_reason__in",
                        [
                            "",
                            "no-prefix",
                            "incomplete-answer",
                            "earlier-cut",
                            "expired",
                            "nothing-cached",
                            "tool-missing",
                            "model-changed",
                            "category-changed",
                            "digest-differs",
                        ],
                    ),
                    (
                        "reason__in",
                        [
                            "idle-or-ended",
                            "turn-boundary",
                            "turn-failed",
                            "waiting-max",
                            "task-ended",
                            "generation-ended",
                            "thread-archived",
                            "thread-ended",
                        ],
                    ),
                    ("status__in", ["queued", "running", "completed", "failed", "cancelled"]),
                ),
                name="shadowrun_of_known_kinds",
            ),
        ),
        migrations.AddConstraint(
            model_name="shadowrun",
            constraint=models.CheckConstraint(
                condition=models.Q(("not_before__isnull", True), ("status", "queued"), _connector="OR"),
                name="shadowrun_waits_while_queued",
            ),
        ),
    ]
