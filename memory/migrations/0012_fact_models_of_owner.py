from django.db import migrations, models


class Migration(migrations.Migration):
    """Every search asks first which models made the vectors of a person's facts: from the index alone."""

    dependencies = [("memory", "0011_log_of_triage")]

    operations = [
        migrations.AddIndex(
            model_name="fact",
            index=models.Index(fields=["owner", "status", "embedding_model"], name="fact_models_of_owner"),
        ),
    ]
