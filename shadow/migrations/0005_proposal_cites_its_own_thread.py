from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_cites_its_own_thread() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        proposal bigint;
        thread bigint;
    BEGIN
        IF TG_TABLE_NAME = 'shadow_shadowfactproposal' THEN
            proposal := NEW.id;
        ELSIF TG_OP = 'DELETE' THEN
            proposal := OLD.proposal_id;
        ELSE
            proposal := NEW.proposal_id;
        END IF;
        -- The row's lock: of two transactions, one that adds evidence and one that lifts the error, the second sees
        -- what the first did.
        SELECT p.thread_id INTO thread FROM shadow_shadowfactproposal p
            WHERE p.id = proposal AND p.validation_error = '' FOR NO KEY UPDATE;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        IF NOT EXISTS (SELECT 1 FROM shadow_shadowproposalevidence e WHERE e.proposal_id = proposal)
            OR EXISTS (
                SELECT 1 FROM shadow_shadowproposalevidence e
                    LEFT JOIN threads_message m ON m.id = e.message_id
                    LEFT JOIN threads_message a ON a.id = e.accepted_by_id
                    LEFT JOIN threads_generation g ON g.id = e.generation_id
                WHERE e.proposal_id = proposal
                    AND (m.thread_id <> thread OR a.thread_id <> thread OR g.thread_id <> thread)
            ) THEN
            RAISE EXCEPTION 'proposal % holds without evidence of its own conversation', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_cites_its_own_thread
        AFTER INSERT OR UPDATE OF thread_id, validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_cites_its_own_thread();
    CREATE CONSTRAINT TRIGGER proposalevidence_of_its_own_thread
        AFTER INSERT OR UPDATE OR DELETE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_cites_its_own_thread();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_of_its_own_thread ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_cites_its_own_thread ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_cites_its_own_thread();
"""


class Migration(migrations.Migration):
    """A proposal without a validation error cites something, and messages and generations of its own conversation
    alone, where it was accepted included."""

    dependencies = [("shadow", "0004_shadowrun_finished_stays")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
