"""Since when a file waits to be rewritten."""

from django.db import migrations, models
from django.db.models.functions import Now

from maxclaw import clock


class Migration(migrations.Migration):
    dependencies = [
        ("maxclaw", "0002_erasures"),
    ]

    operations = [
        migrations.AddField(
            model_name="stalefile",
            name="since",
            field=models.DateTimeField(db_default=Now(), default=clock.now, verbose_name="since"),
        ),
    ]
