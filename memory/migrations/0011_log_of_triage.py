"""The log says which imported facts were looked through, so that no model judges them twice."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0010_one_reading_of_a_thread")]

    operations = [
        migrations.AlterField(
            model_name="factlog",
            name="action",
            field=models.CharField(
                choices=[
                    ("retire", "retired"),
                    ("restore", "restored"),
                    ("merge", "merged"),
                    ("correct", "corrected"),
                    ("replace", "replaced"),
                    ("forget", "forgotten"),
                    ("triage", "looked through"),
                ],
                max_length=10,
            ),
        ),
    ]
