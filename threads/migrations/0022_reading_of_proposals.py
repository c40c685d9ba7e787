from django.db import migrations, models


class Migration(migrations.Migration):
    """What a shadow proposes to remember is private text too."""

    dependencies = [("threads", "0021_reading_of_facts")]

    operations = [
        migrations.AlterField(
            model_name="privatereading",
            name="what",
            field=models.CharField(
                choices=[
                    ("conversation", "part of a conversation"),
                    ("message", "message"),
                    ("generation", "opening and summary of a generation"),
                    ("turn", "turn"),
                    ("tool-call", "tool call"),
                    ("inbox-item", "waiting item"),
                    ("turn-event", "turn event"),
                    ("overflow", "overflow"),
                    ("model-call", "error of a model call"),
                    ("fact", "fact"),
                    ("fact-log", "reason in the memory log"),
                    ("proposal", "proposal for memory"),
                ],
                max_length=20,
                verbose_name="what",
            ),
        ),
    ]
