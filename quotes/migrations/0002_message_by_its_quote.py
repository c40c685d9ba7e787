from django.db import migrations


class Migration(migrations.Migration):
    """Rows that carry one quote find each other: editing, retrying and branching repeat it."""

    atomic = False

    dependencies = [("quotes", "0001_initial"), ("threads", "0018_message_with_quote")]

    operations = [
        migrations.RunSQL(
            sql="""
                CREATE INDEX CONCURRENTLY message_by_its_quote
                    ON threads_message ((meta #>> '{quote,id}'), id) WHERE meta ? 'quote'
            """,
            reverse_sql="DROP INDEX CONCURRENTLY message_by_its_quote",
        ),
        migrations.RunSQL(
            sql="""
                CREATE INDEX CONCURRENTLY inboxitem_by_its_quote
                    ON agent_inboxitem ((quote ->> 'id'), id) WHERE quote IS NOT NULL AND state = 'waiting'
            """,
            reverse_sql="DROP INDEX CONCURRENTLY inboxitem_by_its_quote",
        ),
    ]
