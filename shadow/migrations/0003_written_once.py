from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_written_once() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'a row of % is written once', TG_TABLE_NAME
            USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER shadowactivation_written_once BEFORE UPDATE OR DELETE ON shadow_shadowactivation
        FOR EACH ROW EXECUTE FUNCTION shadow_written_once();
    CREATE TRIGGER shadowbaseline_written_once BEFORE UPDATE ON shadow_shadowbaseline
        FOR EACH ROW EXECUTE FUNCTION shadow_written_once();
"""
BACKWARD = """
    DROP TRIGGER shadowbaseline_written_once ON shadow_shadowbaseline;
    DROP TRIGGER shadowactivation_written_once ON shadow_shadowactivation;
    DROP FUNCTION shadow_written_once();
"""


class Migration(migrations.Migration):
    """Shadows begin once, and from where a generation is read is settled once: completed runs alone move on."""

    dependencies = [("shadow", "0002_rows_of_one_conversation")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
