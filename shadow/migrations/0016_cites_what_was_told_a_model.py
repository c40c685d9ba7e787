from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_cites_what_was_told() RETURNS trigger LANGUAGE plpgsql
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
                JOIN threads_message m ON m.id IN (e.message_id, e.accepted_by_id)
            WHERE e.proposal_id = proposal AND (
                NOT m.model_visible OR m.wire IS NULL
                OR m.meta->>'source' = 'framework' OR m.meta->>'source' LIKE 'kernel/%'
            )
        ) THEN
            RAISE EXCEPTION 'proposal % cites what no model was told', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_cites_what_was_told
        AFTER INSERT OR UPDATE OF validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_cites_what_was_told();
    CREATE CONSTRAINT TRIGGER proposalevidence_was_told
        AFTER INSERT OR UPDATE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_cites_what_was_told();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_was_told ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_cites_what_was_told ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_cites_what_was_told();
"""


class Migration(migrations.Migration):
    """A proposal that holds cites what people, models and tools said and a model was told, never the server's own
    words."""

    dependencies = [("shadow", "0015_outcome_is_there")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
