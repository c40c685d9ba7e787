from django.db import migrations, models


class Migration(migrations.Migration):
    """The log says when the words were said that led to a change, where a model read them late."""

    dependencies = [("memory", "0019_fact_of_known_kind")]

    operations = [
        migrations.AddField(
            model_name="factlog",
            name="as_of",
            field=models.DateTimeField(blank=True, editable=False, null=True, verbose_name="as of"),
        ),
    ]
