from django.db import migrations, models


class Migration(migrations.Migration):
    """Events have kinds with names. Nothing changes in the table."""

    dependencies = [("agent", "0006_sentences_of_imports")]

    operations = [
        migrations.AlterField(
            model_name="turnevent",
            name="kind",
            field=models.CharField(
                choices=[
                    ("message", "message"),
                    ("delta", "more of an answer"),
                    ("reset", "answer begun anew"),
                    ("tool", "tool call"),
                    ("queued", "words queued"),
                    ("unqueued", "words no longer queued"),
                    ("state", "state of the turn"),
                    ("anew", "everything anew"),
                    ("gone", "conversation deleted"),
                ],
                max_length=20,
            ),
        )
    ]
