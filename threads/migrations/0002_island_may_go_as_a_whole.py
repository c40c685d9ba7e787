import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """An island's root names itself, so a protected reference could never be deleted. No column changes."""

    dependencies = [("threads", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="thread",
            name="island",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="threads.thread",
            ),
        ),
    ]
