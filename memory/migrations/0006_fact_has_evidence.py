from django.db import migrations

FORWARD = """
    CREATE FUNCTION memory_fact_has_evidence() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        fact bigint;
    BEGIN
        IF TG_TABLE_NAME = 'memory_fact' THEN
            fact := NEW.id;
        ELSE
            fact := OLD.fact_id;
        END IF;
        -- The row's lock: of two transactions that each take away one of the last two, the second sees neither.
        PERFORM 1 FROM memory_fact WHERE id = fact AND NOT legacy FOR NO KEY UPDATE;
        IF FOUND AND NOT EXISTS (SELECT 1 FROM memory_factevidence WHERE fact_id = fact) THEN
            RAISE EXCEPTION 'fact % has no evidence', fact
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER fact_has_evidence AFTER INSERT OR UPDATE OF legacy ON memory_fact
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION memory_fact_has_evidence();
    CREATE CONSTRAINT TRIGGER fact_keeps_evidence AFTER DELETE OR UPDATE OF fact_id ON memory_factevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION memory_fact_has_evidence();
"""
BACKWARD = """
    DROP TRIGGER fact_keeps_evidence ON memory_factevidence;
    DROP TRIGGER fact_has_evidence ON memory_fact;
    DROP FUNCTION memory_fact_has_evidence();
"""


class Migration(migrations.Migration):
    """A fact has evidence when its transaction commits, and a fact whose last evidence goes has to go with it. What was
    imported from a memory that kept none is excepted."""

    dependencies = [("memory", "0005_facts_of_one_owner")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
