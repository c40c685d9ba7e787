from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("maxclaw", "0001_heartbeat"),
    ]

    operations = [
        migrations.CreateModel(
            name="Erasure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("asked", models.DateTimeField(verbose_name="asked")),
                ("due", models.DateTimeField(verbose_name="due")),
            ],
            options={
                "verbose_name": "erasure",
                "verbose_name_plural": "erasures",
            },
        ),
        migrations.CreateModel(
            name="StaleFile",
            fields=[
                ("name", models.CharField(max_length=63, primary_key=True, serialize=False, verbose_name="name")),
                ("before", models.BigIntegerField(verbose_name="before")),
            ],
            options={
                "verbose_name": "stale file",
                "verbose_name_plural": "stale files",
            },
        ),
    ]
