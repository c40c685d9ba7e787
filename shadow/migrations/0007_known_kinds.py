from django.db import migrations, models


class Migration(migrations.Migration):
    """A proposal that holds, and what any proposal cites, is of kinds that there are."""

    dependencies = [
        ("memory", "0013_words_beside_their_vectors"),
        ("shadow", "0006_isolated_thread_has_no_proposals"),
    ]

    operations = [
        migrations.AddConstraint(
            model_name="shadowfactproposal",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("validation_error", ""), _negated=True),
                    models.Q(
                        ("aspect__in", ["", "fact", "preference", "decision", "correction", "identity"]),
                        ("kind__in", ["", "about-user", "event", "pointer"]),
                        ("tone__in", ["", "remark", "decision"]),
                    ),
                    _connector="OR",
                ),
                name="proposal_that_holds_is_of_known_kinds",
            ),
        ),
        migrations.AddConstraint(
            model_name="shadowproposalevidence",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["max-stated", "max-accepted", "tool-verified", "observed-outcome"])),
                name="proposalevidence_of_known_kind",
            ),
        ),
    ]
