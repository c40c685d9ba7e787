from django.db import migrations

FORWARD = """
    CREATE OR REPLACE FUNCTION threads_message_copied_from_frozen() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF NEW.copied_from_id IS NOT NULL AND NEW.copied_from_id IS DISTINCT FROM OLD.copied_from_id THEN
            RAISE EXCEPTION 'message % is a copy of no other message', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'message_copied_from_frozen', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
"""
BACKWARD = """
    CREATE OR REPLACE FUNCTION threads_message_copied_from_frozen() RETURNS trigger LANGUAGE plpgsql
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
"""


class Migration(migrations.Migration):
    """What was said is no copy afterwards, as a copy stays the copy of one message."""

    dependencies = [("threads", "0028_message_stays_as_it_was_said")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
