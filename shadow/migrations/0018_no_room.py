from django.db import migrations, models


class Migration(migrations.Migration):
    """A run may be cold because the model's window has no room for a page."""

    dependencies = [
        ("shadow", "0017_person_speaks_for_themselves"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="shadowrun",
            name="shadowrun_of_known_kinds",
        ),
        migrations.AlterField(
            model_name="shadowrun",
            name="path_reason",
            field=models.CharField(
                blank=True,
                choices=[
                    ("no-prefix", "there is no request to follow"),
                    ("incomplete-answer", "the last answer was cut short"),
                    ("earlier-cut", "words left the context since"),
                    ("expired", "the cache ran out"),
                    ("nothing-cached", "the provider cached nothing"),
                    ("tool-missing", "the request had no tool for proposals"),
                    ("model-changed", "model, effort or thinking changed"),
                    ("category-changed", "the model may not read this category"),
                    ("no-room", "the model's window has no room for a page"),
                    ("digest-differs", "the record gives another request than was sent"),
                ],
                default="",
                max_length=20,
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
                            "no-room",
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
    ]
