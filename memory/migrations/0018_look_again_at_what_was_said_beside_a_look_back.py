from django.db import migrations

# Their own tools' names, as they stand in the blocks of such a row.
FORWARD = """
    SET CONSTRAINTS ALL IMMEDIATE;
    UPDATE memory_embeddedthread AS done SET through_id = missed.first - 1
    FROM (
        SELECT message.thread_id, min(message.id) AS first FROM threads_message AS message
        WHERE message.role = 'assistant' AND message.model_visible AND message.left_because <> 'superseded'
            AND message.text ~ '[^[:space:]]'
            AND message.wire ~ '"(search_memory|message_context_read|message_history_read|coldcontext_query)"'
            AND NOT EXISTS (SELECT FROM memory_messagechunk AS chunk WHERE chunk.message_id = message.id)
        GROUP BY message.thread_id
    ) AS missed
    WHERE missed.thread_id = done.thread_id AND done.through_id >= missed.first
"""


class Migration(migrations.Migration):
    """Embedding passed by what an assistant said beside a look back, which is found since. How far a conversation was
    embedded goes back to the first such row; the catch-up embeds from there, and what has its vectors keeps them."""

    dependencies = [
        ("memory", "0017_reading_pause"),
        ("threads", "0025_what_was_said_beside_a_look_back"),
    ]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
