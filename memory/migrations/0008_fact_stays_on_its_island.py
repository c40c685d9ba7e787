from django.db import migrations

FORWARD = """
    CREATE FUNCTION memory_fact_stays_on_its_island() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        strayed bigint;
    BEGIN
        IF TG_TABLE_NAME = 'threads_thread' THEN
            SELECT f.id INTO strayed FROM memory_factevidence e JOIN memory_fact f ON f.id = e.fact_id
            WHERE e.owner_id = NEW.owner_id AND (
                    EXISTS (SELECT 1 FROM threads_message m
                            WHERE m.id IN (e.message_id, e.accepted_by_id) AND m.thread_id = NEW.id)
                    OR EXISTS (SELECT 1 FROM threads_generation g WHERE g.id = e.generation_id AND g.thread_id = NEW.id)
                ) AND EXISTS (SELECT 1 FROM threads_thread t WHERE t.id = NEW.id AND t.scope = 'isolated'
                              AND (f.scope <> 'isolated' OR f.island_id IS DISTINCT FROM t.island_id))
            LIMIT 1;
        ELSE
            IF TG_TABLE_NAME = 'memory_factevidence' THEN
                strayed := NEW.fact_id;
            ELSE
                strayed := NEW.id;
            END IF;
            -- The rows' locks: a thread that becomes isolated meanwhile is waited for, or waits.
            PERFORM 1 FROM threads_thread WHERE id IN (
                SELECT m.thread_id FROM memory_factevidence e
                    JOIN threads_message m ON m.id IN (e.message_id, e.accepted_by_id) WHERE e.fact_id = strayed
                UNION SELECT g.thread_id FROM memory_factevidence e
                    JOIN threads_generation g ON g.id = e.generation_id WHERE e.fact_id = strayed
            ) ORDER BY id FOR SHARE;
            SELECT f.id INTO strayed FROM memory_fact f JOIN memory_factevidence e ON e.fact_id = f.id
                LEFT JOIN threads_message m ON m.id IN (e.message_id, e.accepted_by_id)
                LEFT JOIN threads_generation g ON g.id = e.generation_id
                JOIN threads_thread t ON t.id IN (m.thread_id, g.thread_id)
            WHERE f.id = strayed AND t.scope = 'isolated'
                AND (f.scope <> 'isolated' OR f.island_id IS DISTINCT FROM t.island_id)
            LIMIT 1;
        END IF;
        IF strayed IS NOT NULL THEN
            RAISE EXCEPTION 'fact % has evidence from an island and is seen outside it', strayed
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER factevidence_stays_on_its_island AFTER INSERT OR UPDATE ON memory_factevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION memory_fact_stays_on_its_island();
    CREATE CONSTRAINT TRIGGER fact_stays_on_its_island AFTER UPDATE OF scope, island_id ON memory_fact
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (OLD.scope IS DISTINCT FROM NEW.scope OR OLD.island_id IS DISTINCT FROM NEW.island_id)
        EXECUTE FUNCTION memory_fact_stays_on_its_island();
    CREATE CONSTRAINT TRIGGER thread_takes_its_facts_along AFTER UPDATE OF scope, island_id ON threads_thread
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (OLD.scope IS DISTINCT FROM NEW.scope OR OLD.island_id IS DISTINCT FROM NEW.island_id)
        EXECUTE FUNCTION memory_fact_stays_on_its_island();
"""
BACKWARD = """
    DROP TRIGGER thread_takes_its_facts_along ON threads_thread;
    DROP TRIGGER fact_stays_on_its_island ON memory_fact;
    DROP TRIGGER factevidence_stays_on_its_island ON memory_factevidence;
    DROP FUNCTION memory_fact_stays_on_its_island();
"""


class Migration(migrations.Migration):
    """No fact with evidence from an isolated thread is visible outside its island, whichever of the three rows is
    written last."""

    dependencies = [("memory", "0007_fact_never_active_again")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
