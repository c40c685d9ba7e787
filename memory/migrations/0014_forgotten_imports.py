"""The log keeps the fingerprints of imported facts that were forgotten, so that the same file brings none of them back."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0013_words_beside_their_vectors")]

    operations = [
        migrations.AddField(
            model_name="factlog",
            name="forgotten",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=64),
                blank=True,
                default=list,
                editable=False,
                size=None,
                verbose_name="forgotten",
            ),
        ),
    ]
