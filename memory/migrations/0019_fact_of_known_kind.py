from django.db import migrations, models


class Migration(migrations.Migration):
    """A fact is of a kind, an aspect, a tone and a status that there are: what reads it relies on that."""

    dependencies = [("memory", "0018_look_again_at_what_was_said_beside_a_look_back")]

    operations = [
        migrations.AddConstraint(
            model_name="fact",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("aspect__in", ["", "fact", "preference", "decision", "correction", "identity"]),
                    ("kind__in", ["about-user", "event", "pointer"]),
                    ("status__in", ["active", "superseded", "retired"]),
                    ("tone__in", ["remark", "decision"]),
                ),
                name="fact_of_known_kind",
            ),
        ),
    ]
