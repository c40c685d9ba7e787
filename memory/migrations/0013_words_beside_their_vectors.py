from django.db import migrations

TABLES = ("memory_fact", "memory_messagechunk")
FORWARD = "".join(f"ALTER TABLE {table} SET (toast_tuple_target = 8160);" for table in TABLES)
BACKWARD = "".join(f"ALTER TABLE {table} RESET (toast_tuple_target);" for table in TABLES)


class Migration(migrations.Migration):
    """A row with a vector in it is longer than PostgreSQL likes, so it moved the short columns out instead, the name of
    the model first: reading the names of 20,000 took 440 ms instead of 50. With this target the whole row stays."""

    dependencies = [("memory", "0012_fact_models_of_owner")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
