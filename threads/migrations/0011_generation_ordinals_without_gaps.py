from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_generation_ordinals_without_gaps() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF (TG_OP = 'INSERT' AND NEW.ordinal <> 1 + COALESCE(
               (SELECT max(ordinal) FROM threads_generation WHERE thread_id = NEW.thread_id), 0))
           OR (TG_OP = 'UPDATE' AND NEW.ordinal <> OLD.ordinal) THEN
            RAISE EXCEPTION '% is not the next ordinal of its thread', NEW.ordinal
                USING ERRCODE = 'check_violation', CONSTRAINT = 'generation_ordinals_without_gaps', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER generation_ordinals_without_gaps BEFORE INSERT OR UPDATE ON threads_generation
        FOR EACH ROW EXECUTE FUNCTION threads_generation_ordinals_without_gaps();
"""
BACKWARD = """
    DROP TRIGGER generation_ordinals_without_gaps ON threads_generation;
    DROP FUNCTION threads_generation_ordinals_without_gaps();
"""


class Migration(migrations.Migration):
    """Generations of a thread are numbered 1, 2, 3, in the order of their making."""

    dependencies = [("threads", "0010_generation_ends_once")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
