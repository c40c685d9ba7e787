from django.db import migrations


class Migration(migrations.Migration):
    """A view of user rows for the console, with permissions of its own; no table."""

    initial = True

    dependencies = [("threads", "0018_message_with_quote")]

    operations = [
        migrations.CreateModel(
            name="GivenQuote",
            fields=[],
            options={
                "verbose_name": "quote",
                "verbose_name_plural": "quotes",
                "proxy": True,
                "indexes": [],
                "constraints": [],
            },
            bases=("threads.message",),
        ),
    ]
