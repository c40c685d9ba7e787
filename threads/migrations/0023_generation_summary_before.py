from django.db import migrations, models

# A copied opening is that of the generation which rendered it, the first with these words: they name it.
FORWARD = """
    SET CONSTRAINTS ALL IMMEDIATE;
    WITH rendered AS (
        SELECT id, min(id) OVER (PARTITION BY owner_id, coalesce(md5(opening), id::text)) AS by_id
        FROM public.threads_generation
    )
    UPDATE public.threads_generation AS generation SET summary_before = before.summary
    FROM rendered
    JOIN public.threads_generation AS first ON first.id = rendered.by_id
    JOIN public.threads_generation AS before
        ON before.thread_id = first.thread_id AND before.ordinal = first.ordinal - 1
    WHERE rendered.id = generation.id AND before.summary <> '';
"""


class Migration(migrations.Migration):
    """What an opening says of before is known as such: a summary is never read back out of a rendered opening."""

    dependencies = [("threads", "0022_reading_of_proposals")]

    operations = [
        migrations.AddField(
            model_name="generation",
            name="summary_before",
            field=models.TextField(
                blank=True, default="", help_text="the summary that its opening holds, of all that was said before it"
            ),
        ),
        migrations.RunSQL(sql=FORWARD, reverse_sql=migrations.RunSQL.noop),
    ]
