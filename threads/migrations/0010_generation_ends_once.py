from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_generation_ends_once() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.ended IS NOT NULL AND (NEW.ended IS DISTINCT FROM OLD.ended
           OR NEW.end_reason <> OLD.end_reason) THEN
            RAISE EXCEPTION 'generation % has ended already', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'generation_ends_once', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER generation_ends_once BEFORE UPDATE ON threads_generation
        FOR EACH ROW EXECUTE FUNCTION threads_generation_ends_once();
"""
BACKWARD = """
    DROP TRIGGER generation_ends_once ON threads_generation;
    DROP FUNCTION threads_generation_ends_once();
"""


class Migration(migrations.Migration):
    """An ended generation stays ended, for the reason it ended."""

    dependencies = [("threads", "0009_generation_opening_written_once")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
