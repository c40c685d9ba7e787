from django.db import migrations

FORWARD = """
    CREATE FUNCTION agent_toolcall_goes_with_its_result() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF EXISTS (SELECT 1 FROM threads_message m WHERE m.id = OLD.result_id) THEN
            RAISE EXCEPTION 'tool call % is missing beside its result', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'toolcall_goes_with_its_result', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    -- When all is done: whoever erases a conversation deletes its calls first.
    CREATE CONSTRAINT TRIGGER toolcall_goes_with_its_result AFTER DELETE ON agent_toolcall
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (OLD.result_id IS NOT NULL)
        EXECUTE FUNCTION agent_toolcall_goes_with_its_result();
    CREATE FUNCTION agent_toolcalls_go_with_their_results() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        -- Afterwards, so that both tables may be emptied by one statement.
        IF EXISTS (SELECT 1 FROM threads_message m WHERE m.role = 'tool') THEN
            RAISE EXCEPTION 'tool calls would be missing beside their results'
                USING ERRCODE = 'check_violation', CONSTRAINT = 'toolcalls_go_with_their_results',
                    TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE TRIGGER toolcalls_go_with_their_results AFTER TRUNCATE ON agent_toolcall
        FOR EACH STATEMENT EXECUTE FUNCTION agent_toolcalls_go_with_their_results();
"""
BACKWARD = """
    DROP TRIGGER toolcalls_go_with_their_results ON agent_toolcall;
    DROP FUNCTION agent_toolcalls_go_with_their_results();
    DROP TRIGGER toolcall_goes_with_its_result ON agent_toolcall;
    DROP FUNCTION agent_toolcall_goes_with_its_result();
"""


class Migration(migrations.Migration):
    """A tool call that was answered goes with its answer and not before: without it nobody could tell what a result
    proves."""

    dependencies = [("agent", "0009_toolcall_ends_once")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
