from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_copied_from_frozen() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.copied_from_id IS NOT NULL AND NEW.copied_from_id IS NOT NULL
           AND NEW.copied_from_id <> OLD.copied_from_id THEN
            RAISE EXCEPTION 'message % is a copy of another message', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'message_copied_from_frozen', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER message_copied_from_frozen BEFORE UPDATE ON threads_message
        FOR EACH ROW EXECUTE FUNCTION threads_message_copied_from_frozen();
"""
BACKWARD = """
    DROP TRIGGER message_copied_from_frozen ON threads_message;
    DROP FUNCTION threads_message_copied_from_frozen();
"""


class Migration(migrations.Migration):
    """A copy stays the copy of one message; only erasing that one may null the reference."""

    dependencies = [("threads", "0007_message_leaves_once")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
