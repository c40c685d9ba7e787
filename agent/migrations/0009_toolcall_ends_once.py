from django.db import migrations

FORWARD = """
    CREATE FUNCTION agent_toolcall_ends_once() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'tool call % has ended already', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'toolcall_ends_once', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER toolcall_ends_once BEFORE UPDATE ON agent_toolcall
        FOR EACH ROW WHEN (
            (OLD.result_id IS NOT NULL AND NEW.result_id IS DISTINCT FROM OLD.result_id)
            OR (OLD.status IN ('done', 'failed', 'refused', 'interrupted') AND NEW.status <> OLD.status)
        ) EXECUTE FUNCTION agent_toolcall_ends_once();
"""
BACKWARD = """
    DROP TRIGGER toolcall_ends_once ON agent_toolcall;
    DROP FUNCTION agent_toolcall_ends_once();
"""


class Migration(migrations.Migration):
    """A tool call is answered by one row and ends in one way, by which its result is told to hold or not."""

    dependencies = [("agent", "0008_toolcall_stays_as_it_was_made")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
