from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    """Every turn asks for the frames of its conversation that have not ended. Of a long one's thousands of frames all but
    a few have, and each turn would read them all. The table is written meanwhile."""

    atomic = False
    dependencies = [("agent", "0004_import_of_exports")]

    operations = [
        AddIndexConcurrently(
            model_name="taskframe",
            index=models.Index(
                condition=models.Q(("state__in", ["running", "suspended", "waiting"])),
                fields=["thread", "-id"],
                name="frame_open",
            ),
        ),
    ]
