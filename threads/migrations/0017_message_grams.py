import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import numpy as np
from django.conf import settings
from django.db import migrations, models

BATCH = 200

# Searching reads the folded text of many rows. PostgreSQL's own compression makes that two to three times slower;
# lz4 does not, but not every server has it. Rows written before keep theirs.
STORAGE = """
    DO $$ BEGIN
        IF EXISTS (SELECT FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
            ALTER TABLE threads_message ALTER COLUMN search_text SET COMPRESSION lz4;
        ELSE
            ALTER TABLE threads_message ALTER COLUMN search_text SET STORAGE EXTERNAL;
        END IF;
    END $$;
"""
STORAGE_BACK = """
    ALTER TABLE threads_message ALTER COLUMN search_text SET STORAGE EXTENDED;
    ALTER TABLE threads_message ALTER COLUMN search_text SET COMPRESSION default;
"""
# Short texts are scanned, without passing by the long ones.
SHORT_ROWS = (
    "CREATE INDEX message_short_order ON threads_message (thread_id, id) WHERE octet_length(search_text) <= 2000"
)
OWNER = """
    ALTER TABLE threads_messagegrams ADD CONSTRAINT messagegrams_owner_is_the_threads
        FOREIGN KEY (thread_id, owner_id) REFERENCES threads_thread (id, owner_id)
        ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
"""


def grams_of(text):
    data = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.uint32)
    return np.unique((data[:-2] << np.uint32(16)) | (data[1:-1] << np.uint32(8)) | data[2:]).tolist()


def index_what_is_there(apps, schema_editor):
    """Index the long messages written before."""
    with schema_editor.connection.cursor() as cursor:
        last = 0
        while True:
            cursor.execute(
                "SELECT id, owner_id, thread_id, search_text FROM threads_message"
                " WHERE id > %s AND octet_length(search_text) > 2000 ORDER BY id LIMIT %s",
                [last, BATCH],
            )
            rows = cursor.fetchall()
            if not rows:
                break
            last = rows[-1][0]
            for id, owner_id, thread_id, text in rows:
                grams = [-1 - thread_id % (1 << 31), *grams_of(text)]
                cursor.execute(
                    "INSERT INTO threads_messagegrams (message_id, owner_id, thread_id, grams)"
                    " VALUES (%s, %s, %s, %s::int[])",
                    [id, owner_id, thread_id, "{" + ",".join(map(str, grams)) + "}"],
                )


class Migration(migrations.Migration):
    """Literal search whose cost does not grow with the conversation: folded text is stored as it is read, short rows
    have an order of their own, and long ones an index of their runs of three bytes, in a table of its own because the
    planner does not know what reading long text costs."""

    dependencies = [
        ("threads", "0016_standing_instructions"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", migrations.RunSQL.noop),
        migrations.RunSQL(STORAGE, STORAGE_BACK),
        migrations.RunSQL(SHORT_ROWS, "DROP INDEX message_short_order"),
        migrations.CreateModel(
            name="MessageGrams",
            fields=[
                (
                    "message",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="threads.message",
                    ),
                ),
                (
                    "grams",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(),
                        help_text="the thread's as the first one, below zero",
                        size=None,
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="threads.thread"
                    ),
                ),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False, fields=["grams"], name="messagegrams_grams"
                    ),
                ],
            },
        ),
        migrations.RunSQL(OWNER, "ALTER TABLE threads_messagegrams DROP CONSTRAINT messagegrams_owner_is_the_threads"),
        migrations.RunPython(index_what_is_there, migrations.RunPython.noop),
    ]
