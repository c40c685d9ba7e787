from django.db import migrations, models


class Migration(migrations.Migration):
    """Evidence of a fact is of a kind that there is, as that of a proposal is."""

    dependencies = [("memory", "0015_what_taught_the_forgotten")]

    operations = [
        migrations.AddConstraint(
            model_name="factevidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["max-stated", "max-accepted", "tool-verified", "observed-outcome"])),
                name="factevidence_of_known_kind",
            ),
        ),
    ]
