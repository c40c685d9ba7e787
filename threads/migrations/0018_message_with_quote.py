from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """The rows that carry a quote are few, and the list of quotes reads no others."""

    atomic = False

    dependencies = [("threads", "0017_message_grams")]

    operations = [
        AddIndexConcurrently(
            model_name="message",
            index=models.Index(
                condition=models.Q(("meta__has_key", "quote")), fields=["owner", "id"], name="message_with_quote"
            ),
        ),
    ]
