"""The log keeps which messages and generations taught a fact that was forgotten, so that none of them proves it again
in other words."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0014_forgotten_imports")]

    operations = [
        migrations.AddField(
            model_name="factlog",
            name="forgotten_generations",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                blank=True,
                default=list,
                editable=False,
                size=None,
                verbose_name="contexts that taught it",
            ),
        ),
        migrations.AddField(
            model_name="factlog",
            name="forgotten_messages",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                blank=True,
                default=list,
                editable=False,
                size=None,
                verbose_name="messages that taught it",
            ),
        ),
    ]
