from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_stays_as_it_was_said() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'who said message %, and to whom, stays', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'message_stays_as_it_was_said', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER message_stays_as_it_was_said BEFORE UPDATE ON threads_message
        FOR EACH ROW WHEN (
            (NEW.role, NEW.is_error, NEW.model_visible)
                IS DISTINCT FROM (OLD.role, OLD.is_error, OLD.model_visible)
            OR NEW.meta -> 'source' IS DISTINCT FROM OLD.meta -> 'source'
        ) EXECUTE FUNCTION threads_message_stays_as_it_was_said();
"""
BACKWARD = """
    DROP TRIGGER message_stays_as_it_was_said ON threads_message;
    DROP FUNCTION threads_message_stays_as_it_was_said();
"""


class Migration(migrations.Migration):
    """Who said a message, whether it says that something failed, and whether a model may read it: what it proves
    hangs on each."""

    dependencies = [("threads", "0027_message_stays_where_it_was_said")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
