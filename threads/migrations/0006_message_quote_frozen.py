from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_quote_frozen() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF jsonb_typeof(OLD.meta -> 'quote') <> 'null'
           AND (NEW.meta -> 'quote') IS DISTINCT FROM (OLD.meta -> 'quote') THEN
            RAISE EXCEPTION 'the quote of message % is frozen', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'message_quote_frozen', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER message_quote_frozen BEFORE UPDATE ON threads_message
        FOR EACH ROW EXECUTE FUNCTION threads_message_quote_frozen();
"""
BACKWARD = """
    DROP TRIGGER message_quote_frozen ON threads_message;
    DROP FUNCTION threads_message_quote_frozen();
"""


class Migration(migrations.Migration):
    """A quote is what was handed over at that moment, whatever becomes of its source."""

    dependencies = [("threads", "0005_message_wire_written_once")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
