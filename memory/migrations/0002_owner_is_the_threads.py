from django.db import migrations

TABLES = ("messagechunk", "embeddedthread")
FORWARD = "".join(
    f"""
    ALTER TABLE memory_{table} ADD CONSTRAINT {table}_owner_is_the_threads
        FOREIGN KEY (thread_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
    """
    for table in TABLES
)
BACKWARD = "".join(f"ALTER TABLE memory_{table} DROP CONSTRAINT {table}_owner_is_the_threads;" for table in TABLES)


class Migration(migrations.Migration):
    """Every table that grows with use carries its owner, and it is its thread's."""

    dependencies = [("memory", "0001_initial"), ("threads", "0003_owner_is_the_threads")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
