import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    """Until when nothing of a person's is read for memory. No row, or a moment that is over: nothing stands against
    it."""

    dependencies = [
        ("accounts", "0001_initial"),
        ("memory", "0016_evidence_of_known_kind"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReadingPause",
            fields=[
                (
                    "owner",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("until", models.DateTimeField()),
            ],
            options={
                "verbose_name": "pause of the steward",
                "verbose_name_plural": "pauses of the steward",
            },
        ),
    ]
