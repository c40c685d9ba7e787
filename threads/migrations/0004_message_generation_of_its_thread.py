from django.db import migrations, models

FORWARD = """
    ALTER TABLE threads_message ADD CONSTRAINT message_generation_of_its_thread
        FOREIGN KEY (generation_id, thread_id) REFERENCES threads_generation (id, thread_id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
"""
BACKWARD = """
    ALTER TABLE threads_message DROP CONSTRAINT message_generation_of_its_thread;
"""


class Migration(migrations.Migration):
    """A message's generation belongs to its thread."""

    dependencies = [("threads", "0003_owner_is_the_threads")]

    operations = [
        migrations.AddConstraint(
            model_name="generation",
            constraint=models.UniqueConstraint(fields=("id", "thread"), name="generation_id_with_thread"),
        ),
        migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD),
    ]
