from django.db import migrations, models

# Deferred, so that a thread and its rows can change together. Deleting a thread takes its rows along even in plain
# SQL; a parent that goes leaves its tasks and branches behind.
FORWARD = """
    ALTER TABLE threads_generation ADD CONSTRAINT generation_owner_is_the_threads
        FOREIGN KEY (thread_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE threads_message ADD CONSTRAINT message_owner_is_the_threads
        FOREIGN KEY (thread_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE threads_thread ADD CONSTRAINT thread_parent_of_same_owner
        FOREIGN KEY (parent_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE SET NULL (parent_id) DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE threads_thread ADD CONSTRAINT thread_island_of_same_owner
        FOREIGN KEY (island_id, owner_id) REFERENCES threads_thread (id, owner_id)
        DEFERRABLE INITIALLY DEFERRED;
"""
BACKWARD = """
    ALTER TABLE threads_thread DROP CONSTRAINT thread_island_of_same_owner;
    ALTER TABLE threads_thread DROP CONSTRAINT thread_parent_of_same_owner;
    ALTER TABLE threads_message DROP CONSTRAINT message_owner_is_the_threads;
    ALTER TABLE threads_generation DROP CONSTRAINT generation_owner_is_the_threads;
"""


class Migration(migrations.Migration):
    """Every table that grows with use carries its owner, and it is its thread's; owners never mix."""

    dependencies = [("threads", "0002_island_may_go_as_a_whole")]

    operations = [
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.UniqueConstraint(fields=("id", "owner"), name="thread_id_with_owner"),
        ),
        migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD),
    ]
