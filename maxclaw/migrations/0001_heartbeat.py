from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Heartbeat",
            fields=[
                (
                    "name",
                    models.CharField(max_length=200, primary_key=True, serialize=False, verbose_name="name"),
                ),
                ("beat_at", models.DateTimeField(verbose_name="last beat")),
            ],
            options={
                "verbose_name": "heartbeat",
                "verbose_name_plural": "heartbeats",
            },
        ),
    ]
