from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_generation_opening_written_once() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.opening IS NOT NULL AND NEW.opening IS DISTINCT FROM OLD.opening THEN
            RAISE EXCEPTION 'the opening of generation % is frozen', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'generation_opening_written_once', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER generation_opening_written_once BEFORE UPDATE ON threads_generation
        FOR EACH ROW EXECUTE FUNCTION threads_generation_opening_written_once();
"""
BACKWARD = """
    DROP TRIGGER generation_opening_written_once ON threads_generation;
    DROP FUNCTION threads_generation_opening_written_once();
"""


class Migration(migrations.Migration):
    """The opening context is the start of every request of its generation: it goes from null to its value once."""

    dependencies = [("threads", "0008_message_copied_from_frozen")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
