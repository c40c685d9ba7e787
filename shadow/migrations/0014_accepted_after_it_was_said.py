from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_accepted_afterwards() RETURNS trigger LANGUAGE plpgsql
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
            SELECT 1 FROM shadow_shadowproposalevidence e
            WHERE e.proposal_id = proposal AND e.accepted_by_id <= e.message_id
        ) THEN
            RAISE EXCEPTION 'proposal % was accepted before it was said', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_accepted_afterwards
        AFTER INSERT OR UPDATE OF validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_accepted_afterwards();
    CREATE CONSTRAINT TRIGGER proposalevidence_accepted_afterwards
        AFTER INSERT OR UPDATE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_accepted_afterwards();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_accepted_afterwards ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_accepted_afterwards ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_accepted_afterwards();
"""


class Migration(migrations.Migration):
    """What accepts comes after what it accepts, in a proposal that holds."""

    dependencies = [("shadow", "0013_results_prove_as_their_calls_did")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
