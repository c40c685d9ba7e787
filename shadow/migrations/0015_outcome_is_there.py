from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_outcome_is_there() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        proposal bigint;
    BEGIN
        IF TG_TABLE_NAME = 'shadow_shadowfactproposal' THEN
            proposal := NEW.id;
        ELSE
            proposal := NEW.proposal_id;
        END IF;
        -- The row's lock: of two transactions, one that adds evidence and one that lifts the error, the second sees
        -- what the first did.
        PERFORM 1 FROM shadow_shadowfactproposal p
            WHERE p.id = proposal AND p.validation_error = '' FOR NO KEY UPDATE;
        IF FOUND AND EXISTS (
            SELECT 1 FROM shadow_shadowproposalevidence e JOIN threads_generation g ON g.id = e.generation_id
            WHERE e.proposal_id = proposal AND g.ended IS NULL
        ) THEN
            RAISE EXCEPTION 'proposal % cites the outcome of a generation that goes on', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_cites_outcomes_that_are_there
        AFTER INSERT OR UPDATE OF validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_outcome_is_there();
    CREATE CONSTRAINT TRIGGER proposalevidence_outcome_is_there
        AFTER INSERT OR UPDATE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_outcome_is_there();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_outcome_is_there ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_cites_outcomes_that_are_there ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_outcome_is_there();
"""


class Migration(migrations.Migration):
    """The outcome of a generation proves nothing before it has ended."""

    dependencies = [("shadow", "0014_accepted_after_it_was_said")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
