import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

FORWARD = """
    CREATE VIEW quotes_givenquote AS
    SELECT coalesce(m.meta #>> '{quote,id}', 'm' || m.id) AS id,
           m.created, m.owner_id, m.thread_id, m.id AS message_id, NULL::bigint AS item_id,
           m.meta -> 'quote' AS quote, m.text AS words
      FROM threads_message m
     WHERE m.meta ? 'quote' AND jsonb_typeof(m.meta -> 'quote') = 'object'
       -- A quote from before quotes had ids is told from its copies by these being copies.
       AND (m.meta #>> '{quote,id}' IS NOT NULL OR m.copied_from_id IS NULL)
       AND NOT EXISTS (
           SELECT FROM threads_message earlier
            WHERE earlier.meta ? 'quote' AND earlier.meta #>> '{quote,id}' = m.meta #>> '{quote,id}'
              AND earlier.id < m.id
       )
    UNION ALL
    SELECT coalesce(i.quote ->> 'id', 'i' || i.id),
           i.created, i.owner_id, i.thread_id, NULL::bigint, i.id, i.quote, i.text
      FROM agent_inboxitem i
     WHERE i.quote IS NOT NULL AND jsonb_typeof(i.quote) = 'object' AND i.state = 'waiting'
       AND NOT EXISTS (
           SELECT FROM threads_message taken
            WHERE taken.meta ? 'quote' AND taken.meta #>> '{quote,id}' = i.quote ->> 'id'
       )
       AND NOT EXISTS (
           SELECT FROM agent_inboxitem earlier
            WHERE earlier.quote IS NOT NULL AND earlier.state = 'waiting'
              AND earlier.quote ->> 'id' = i.quote ->> 'id' AND earlier.id < i.id
       )
"""


class Migration(migrations.Migration):
    """Every quote that was given, once: wherever its words wait, stand, or were copied to."""

    dependencies = [
        ("agent", "0004_import_of_exports"),
        ("quotes", "0002_message_by_its_quote"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.DeleteModel(name="GivenQuote"),
        migrations.RunSQL(sql=FORWARD, reverse_sql="DROP VIEW quotes_givenquote"),
        migrations.CreateModel(
            name="GivenQuote",
            fields=[
                ("id", models.CharField(max_length=40, primary_key=True, serialize=False)),
                ("created", models.DateTimeField()),
                ("quote", models.JSONField()),
                ("words", models.TextField(verbose_name="the user's own words")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.DO_NOTHING, related_name="+", to="threads.thread"
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="threads.message",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="agent.inboxitem",
                    ),
                ),
            ],
            options={
                "verbose_name": "quote",
                "verbose_name_plural": "quotes",
                "db_table": "quotes_givenquote",
                "managed": False,
            },
        ),
    ]
