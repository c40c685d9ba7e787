from django.db import migrations, models


class Migration(migrations.Migration):
    """Why an import failed is stored as a sentence and its values, and read in the language of the day. What stands
    there already is a sentence as it was said, and stays one. Back, a sentence with values becomes its JSON."""

    dependencies = [("agent", "0005_open_frames")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE agent_importjob ALTER COLUMN problem TYPE jsonb USING to_jsonb(problem)",
            "ALTER TABLE agent_importjob ALTER COLUMN problem TYPE text USING problem #>> '{}'",
            state_operations=[
                migrations.AlterField(
                    model_name="importjob",
                    name="problem",
                    field=models.JSONField(
                        blank=True,
                        default=str,
                        help_text="why it failed, a sentence for the person; blank for none",
                    ),
                )
            ],
        )
    ]
