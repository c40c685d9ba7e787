from django.db import migrations

FORWARD = """
    SET CONSTRAINTS ALL IMMEDIATE;
    UPDATE threads_message SET meta = meta - 'looks_back'
    WHERE role = 'assistant' AND meta ? 'looks_back' AND text ~ '[^[:space:]]'
"""


class Migration(migrations.Migration):
    """What an assistant said beside a look back is found. The mark is written with a row and asked for by every search,
    so the rows that were marked before that rule are put right here, once, and not at each search, which would have to
    read their blocks. Their vectors are caught up with by memory."""

    dependencies = [("threads", "0024_generation_opened_with_frozen")]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
