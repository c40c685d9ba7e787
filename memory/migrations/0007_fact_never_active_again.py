from django.db import migrations

FORWARD = """
    CREATE FUNCTION memory_fact_never_active_again() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.status <> 'active' AND NEW.status = 'active' THEN
            RAISE EXCEPTION 'fact % is % for good', OLD.id, OLD.status
                USING ERRCODE = 'check_violation', CONSTRAINT = 'fact_never_active_again', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER fact_never_active_again BEFORE UPDATE ON memory_fact
        FOR EACH ROW EXECUTE FUNCTION memory_fact_never_active_again();
"""
BACKWARD = """
    DROP TRIGGER fact_never_active_again ON memory_fact;
    DROP FUNCTION memory_fact_never_active_again();
"""


class Migration(migrations.Migration):
    """What was superseded or retired comes back as a new fact with the evidence, so that the order of versions holds."""

    dependencies = [("memory", "0006_fact_has_evidence")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
