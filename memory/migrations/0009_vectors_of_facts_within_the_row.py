from django.db import migrations

FORWARD = "ALTER TABLE memory_fact ALTER COLUMN embedding SET STORAGE MAIN;"
BACKWARD = "ALTER TABLE memory_fact ALTER COLUMN embedding SET STORAGE EXTERNAL;"


class Migration(migrations.Migration):
    """As with chunks: a search reads every vector of an owner's facts, so none is kept in a second table."""

    dependencies = [("memory", "0008_fact_stays_on_its_island")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
