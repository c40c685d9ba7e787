from django.db import migrations

FORWARD = """
    DROP TRIGGER isolated_thread_has_no_proposals ON threads_thread;
    DROP TRIGGER proposal_never_of_an_isolated_thread ON shadow_shadowfactproposal;
    CREATE OR REPLACE FUNCTION shadow_isolated_thread_has_no_proposals() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        standing text;
    BEGIN
        -- As it is at commit: what was written may have been changed again, or have gone.
        IF TG_TABLE_NAME = 'threads_thread' THEN
            SELECT t.scope INTO standing FROM threads_thread t WHERE t.id = NEW.id
                AND EXISTS (SELECT 1 FROM shadow_shadowfactproposal p WHERE p.thread_id = t.id);
        ELSE
            -- The row's lock: a conversation that becomes isolated meanwhile is waited for, or waits.
            SELECT t.scope INTO standing FROM threads_thread t
                JOIN shadow_shadowfactproposal p ON p.thread_id = t.id
                WHERE p.id = NEW.id FOR SHARE OF t;
        END IF;
        IF standing = 'isolated' THEN
            RAISE EXCEPTION 'an isolated conversation has proposals'
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_never_of_an_isolated_thread
        AFTER INSERT OR UPDATE OF thread_id ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_isolated_thread_has_no_proposals();
    CREATE CONSTRAINT TRIGGER isolated_thread_has_no_proposals AFTER INSERT OR UPDATE OF id, scope ON threads_thread
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.scope = 'isolated')
        EXECUTE FUNCTION shadow_isolated_thread_has_no_proposals();
"""
BACKWARD = """
    DROP TRIGGER isolated_thread_has_no_proposals ON threads_thread;
    DROP TRIGGER proposal_never_of_an_isolated_thread ON shadow_shadowfactproposal;
    CREATE OR REPLACE FUNCTION shadow_isolated_thread_has_no_proposals() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        standing text;
    BEGIN
        IF TG_TABLE_NAME = 'threads_thread' THEN
            -- As it is at commit: what changed the row may have been changed again.
            SELECT t.scope INTO standing FROM threads_thread t WHERE t.id = NEW.id
                AND EXISTS (SELECT 1 FROM shadow_shadowfactproposal p WHERE p.thread_id = t.id);
        ELSE
            -- The row's lock: a conversation that becomes isolated meanwhile is waited for, or waits.
            SELECT t.scope INTO standing FROM threads_thread t WHERE t.id = NEW.thread_id FOR SHARE;
        END IF;
        IF standing = 'isolated' THEN
            RAISE EXCEPTION 'an isolated conversation has proposals'
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE TRIGGER proposal_never_of_an_isolated_thread
        AFTER INSERT OR UPDATE OF thread_id ON shadow_shadowfactproposal
        FOR EACH ROW EXECUTE FUNCTION shadow_isolated_thread_has_no_proposals();
    CREATE CONSTRAINT TRIGGER isolated_thread_has_no_proposals AFTER UPDATE OF scope ON threads_thread
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.scope = 'isolated')
        EXECUTE FUNCTION shadow_isolated_thread_has_no_proposals();
"""


class Migration(migrations.Migration):
    """That nothing is proposed of an isolated conversation is asked when all rows are there, in whatever order they
    came: of one that is written isolated, or takes the number of another one, too."""

    dependencies = [("shadow", "0021_proposal_words_stay")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
