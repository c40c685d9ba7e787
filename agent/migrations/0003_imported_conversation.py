import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import maxclaw.clock

FORWARD = """
    ALTER TABLE agent_importedconversation ADD CONSTRAINT importedconversation_owner_is_the_threads
        FOREIGN KEY (thread_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
"""
BACKWARD = "ALTER TABLE agent_importedconversation DROP CONSTRAINT importedconversation_owner_is_the_threads;"


class Migration(migrations.Migration):
    """Importing a file again finds the threads that its conversations became. A thread that is erased takes its row
    along, so the conversation can be imported anew."""

    dependencies = [
        ("agent", "0002_owner_is_the_threads"),
        ("threads", "0012_copies_outlive_what_they_copy"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportedConversation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("source", models.CharField(help_text="the conversation's id in the imported file", max_length=200)),
                ("created", models.DateTimeField(default=maxclaw.clock.now)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="imported_from", to="threads.thread"
                    ),
                ),
            ],
            options={
                "verbose_name": "imported conversation",
                "verbose_name_plural": "imported conversations",
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "source"), name="importedconversation_once_per_owner")
                ],
            },
        ),
        migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD),
    ]
