from django.db import migrations

FORWARD = "ALTER TABLE memory_messagechunk ALTER COLUMN embedding SET STORAGE MAIN;"
BACKWARD = "ALTER TABLE memory_messagechunk ALTER COLUMN embedding SET STORAGE EXTERNAL;"


class Migration(migrations.Migration):
    """A vector of 512 numbers is just too long to stay in its row by default. A search reads every vector of a
    conversation, so each would be fetched from a second table."""

    dependencies = [("memory", "0002_owner_is_the_threads")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
