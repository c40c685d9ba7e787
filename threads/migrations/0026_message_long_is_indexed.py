from django.db import migrations

FORWARD = """
    CREATE FUNCTION threads_message_long_is_indexed() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        written bigint;
    BEGIN
        IF TG_OP = 'DELETE' THEN
            written := OLD.message_id;
        ELSE
            written := NEW.id;
        END IF;
        IF EXISTS (
            SELECT FROM threads_message AS message
            WHERE message.id = written AND octet_length(message.search_text) > 2000
                AND NOT EXISTS (SELECT FROM threads_messagegrams WHERE message_id = written)
        ) THEN
            RAISE EXCEPTION 'message % is long and not indexed', written
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER message_long_is_indexed
        AFTER INSERT OR UPDATE OF search_text ON threads_message DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (octet_length(NEW.search_text) > 2000) EXECUTE FUNCTION threads_message_long_is_indexed();
    CREATE CONSTRAINT TRIGGER messagegrams_of_every_long_message
        AFTER DELETE ON threads_messagegrams DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION threads_message_long_is_indexed();

    CREATE FUNCTION threads_message_leaves_its_index() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        DELETE FROM threads_messagegrams WHERE message_id = OLD.id;
        RETURN NULL;
    END
    $body$;
    CREATE TRIGGER message_leaves_its_index AFTER UPDATE OF search_text ON threads_message
        FOR EACH ROW WHEN (OLD.search_text IS DISTINCT FROM NEW.search_text)
        EXECUTE FUNCTION threads_message_leaves_its_index();
"""
BACKWARD = """
    DROP TRIGGER message_leaves_its_index ON threads_message;
    DROP TRIGGER messagegrams_of_every_long_message ON threads_messagegrams;
    DROP TRIGGER message_long_is_indexed ON threads_message;
    DROP FUNCTION threads_message_leaves_its_index();
    DROP FUNCTION threads_message_long_is_indexed();
"""


class Migration(migrations.Migration):
    """A search looks long messages up in their index alone: one that is not in it as it is would never be found. What
    is there of an old text goes with it, and no transaction ends with a long message that has nothing there."""

    dependencies = [("threads", "0025_what_was_said_beside_a_look_back")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
