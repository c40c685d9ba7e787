from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_wire_written_once() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.wire IS NOT NULL AND NEW.wire IS DISTINCT FROM OLD.wire THEN
            RAISE EXCEPTION 'message % was sent already: its wire is frozen', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'message_wire_written_once', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER message_wire_written_once BEFORE UPDATE ON threads_message
        FOR EACH ROW EXECUTE FUNCTION threads_message_wire_written_once();
"""
BACKWARD = """
    DROP TRIGGER message_wire_written_once ON threads_message;
    DROP FUNCTION threads_message_wire_written_once();
"""


class Migration(migrations.Migration):
    """What went to or came from a model is a cached prefix: it goes from null to its value once."""

    dependencies = [("threads", "0004_message_generation_of_its_thread")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
