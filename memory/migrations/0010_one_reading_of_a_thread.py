"""A page is claimed by its episode: one running at a time for a conversation, so that no row is read twice."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0009_vectors_of_facts_within_the_row")]

    operations = [
        migrations.AlterField(
            model_name="episode",
            name="outcome",
            field=models.CharField(
                choices=[("running", "being read"), ("done", "read"), ("failed", "failed")],
                default="done",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="episode",
            constraint=models.UniqueConstraint(
                condition=models.Q(("outcome", "running")),
                fields=("thread",),
                name="episode_one_running_per_thread",
            ),
        ),
        migrations.AddIndex(
            model_name="episode",
            index=models.Index(
                condition=models.Q(("outcome", "done")),
                fields=["thread", "-through_seq"],
                name="episode_thread_reached",
            ),
        ),
    ]
