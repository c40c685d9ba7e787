from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_leaves_once() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF (OLD.left_at_cut IS NOT NULL AND NEW.left_at_cut IS DISTINCT FROM OLD.left_at_cut)
           OR (OLD.left_because = 'superseded' AND NEW.left_because <> 'superseded') THEN
            RAISE EXCEPTION 'message % left its context already', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'message_leaves_once', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER message_leaves_once BEFORE UPDATE ON threads_message
        FOR EACH ROW EXECUTE FUNCTION threads_message_leaves_once();
"""
BACKWARD = """
    DROP TRIGGER message_leaves_once ON threads_message;
    DROP FUNCTION threads_message_leaves_once();
"""


class Migration(migrations.Migration):
    """A row leaves at one cut for good, or earlier requests could not be rebuilt; what is cold may be superseded."""

    dependencies = [("threads", "0006_message_quote_frozen")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
