from django.db import migrations

# A thread that goes leaves the note of its reading behind, without saying which thread it was.
FORWARD = """
    ALTER TABLE threads_privatereading ADD CONSTRAINT privatereading_owner_is_the_threads
        FOREIGN KEY (thread_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE SET NULL (thread_id) DEFERRABLE INITIALLY DEFERRED;
"""
BACKWARD = "ALTER TABLE threads_privatereading DROP CONSTRAINT privatereading_owner_is_the_threads;"


class Migration(migrations.Migration):
    """A reading is noted with the owner of the conversation that was read."""

    dependencies = [("threads", "0014_private_reading")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
