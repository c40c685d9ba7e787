from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_generation_stays_in_its_thread() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'generation % stays in its conversation', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'generation_stays_in_its_thread', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER generation_stays_in_its_thread BEFORE UPDATE ON threads_generation
        FOR EACH ROW WHEN (
            (NEW.id, NEW.thread_id, NEW.owner_id) IS DISTINCT FROM (OLD.id, OLD.thread_id, OLD.owner_id)
        ) EXECUTE FUNCTION threads_generation_stays_in_its_thread();
"""
BACKWARD = """
    DROP TRIGGER generation_stays_in_its_thread ON threads_generation;
    DROP FUNCTION threads_generation_stays_in_its_thread();
"""


class Migration(migrations.Migration):
    """A generation stays the one of its number in its conversation, for whatever cites it or belongs to it."""

    dependencies = [("threads", "0029_message_never_becomes_a_copy")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
