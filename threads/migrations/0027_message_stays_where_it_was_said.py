from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_stays_where_it_was_said() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'message % stays where it was said', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'message_stays_where_it_was_said', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER message_stays_where_it_was_said BEFORE UPDATE ON threads_message
        FOR EACH ROW WHEN (
            (NEW.id, NEW.thread_id, NEW.generation_id, NEW.owner_id)
                IS DISTINCT FROM (OLD.id, OLD.thread_id, OLD.generation_id, OLD.owner_id)
        ) EXECUTE FUNCTION threads_message_stays_where_it_was_said();
"""
BACKWARD = """
    DROP TRIGGER message_stays_where_it_was_said ON threads_message;
    DROP FUNCTION threads_message_stays_where_it_was_said();
"""


class Migration(migrations.Migration):
    """A message keeps its place in the conversation that it was said in: whatever cites it cites that place."""

    dependencies = [("threads", "0026_message_long_is_indexed")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
