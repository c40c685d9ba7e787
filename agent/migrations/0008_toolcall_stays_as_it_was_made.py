from django.db import migrations

FORWARD = """
    CREATE FUNCTION agent_toolcall_stays_as_it_was_made() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'tool call % stays as it was made', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'toolcall_stays_as_it_was_made', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER toolcall_stays_as_it_was_made BEFORE UPDATE ON agent_toolcall
        FOR EACH ROW WHEN (
            (NEW.id, NEW.message_id, NEW.thread_id, NEW.owner_id, NEW.call_id, NEW.tool)
                IS DISTINCT FROM (OLD.id, OLD.message_id, OLD.thread_id, OLD.owner_id, OLD.call_id, OLD.tool)
        ) EXECUTE FUNCTION agent_toolcall_stays_as_it_was_made();
"""
BACKWARD = """
    DROP TRIGGER toolcall_stays_as_it_was_made ON agent_toolcall;
    DROP FUNCTION agent_toolcall_stays_as_it_was_made();
"""


class Migration(migrations.Migration):
    """A tool call stays what a model asked for, and of the message that asked."""

    dependencies = [("agent", "0007_kinds_of_turn_events")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
