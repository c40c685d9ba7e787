from django.db import migrations

FORWARD = """
    ALTER TABLE threads_message ADD CONSTRAINT message_outlives_what_it_copies
        FOREIGN KEY (copied_from_id) REFERENCES threads_message (id)
        ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE threads_thread ADD CONSTRAINT thread_outlives_what_it_copies
        FOREIGN KEY (copied_from_id) REFERENCES threads_message (id)
        ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED;
"""
BACKWARD = """
    ALTER TABLE threads_thread DROP CONSTRAINT thread_outlives_what_it_copies;
    ALTER TABLE threads_message DROP CONSTRAINT message_outlives_what_it_copies;
"""


class Migration(migrations.Migration):
    """A branch stays when its source is deleted, in plain SQL too."""

    dependencies = [("threads", "0011_generation_ordinals_without_gaps")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
