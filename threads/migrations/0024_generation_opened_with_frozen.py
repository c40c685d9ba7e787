from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_generation_opened_with_frozen() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.opening IS NOT NULL AND (NEW.summary_before IS DISTINCT FROM OLD.summary_before
           OR NEW.standing IS DISTINCT FROM OLD.standing) THEN
            RAISE EXCEPTION 'what the opening of generation % holds is frozen', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'generation_opened_with_frozen', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER generation_opened_with_frozen BEFORE UPDATE ON threads_generation
        FOR EACH ROW EXECUTE FUNCTION threads_generation_opened_with_frozen();
"""
BACKWARD = """
    DROP TRIGGER generation_opened_with_frozen ON threads_generation;
    DROP FUNCTION threads_generation_opened_with_frozen();
"""


class Migration(migrations.Migration):
    """What a rendered opening holds is known from beside it: later summaries and the check of their quotations build on
    that, so it must go on saying what went out."""

    dependencies = [("threads", "0023_generation_summary_before")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
