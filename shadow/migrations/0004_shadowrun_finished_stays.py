from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_shadowrun_finished_stays() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.status IN ('completed', 'failed', 'cancelled') AND (
            to_jsonb(NEW) - 'call' <> to_jsonb(OLD) - 'call' OR (NEW.call IS NOT NULL AND NEW.call <> OLD.call)
        ) THEN
            RAISE EXCEPTION 'shadow run % is over', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'shadowrun_finished_stays', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER shadowrun_finished_stays BEFORE UPDATE ON shadow_shadowrun
        FOR EACH ROW EXECUTE FUNCTION shadow_shadowrun_finished_stays();
"""
BACKWARD = """
    DROP TRIGGER shadowrun_finished_stays ON shadow_shadowrun;
    DROP FUNCTION shadow_shadowrun_finished_stays();
"""


class Migration(migrations.Migration):
    """A run that is over does not change. Erasing may take away the id of its call, which is all that it names outside
    its own conversation."""

    dependencies = [("shadow", "0003_written_once")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
