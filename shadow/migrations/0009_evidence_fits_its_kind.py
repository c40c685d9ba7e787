from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_evidence_fits() RETURNS trigger LANGUAGE plpgsql
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
                LEFT JOIN threads_message m ON m.id = e.message_id
                LEFT JOIN threads_message a ON a.id = e.accepted_by_id
            WHERE e.proposal_id = proposal AND (
                m.copied_from_id IS NOT NULL OR a.copied_from_id IS NOT NULL
                OR NOT CASE e.kind
                    -- What answers a question card is the person's, and is a tool's row.
                    WHEN 'max-stated' THEN coalesce(m.role IN ('user', 'tool'), false)
                    WHEN 'max-accepted' THEN coalesce(m.role = 'assistant' AND a.role IN ('user', 'tool'), false)
                    WHEN 'tool-verified' THEN coalesce(m.role = 'tool', false)
                    ELSE coalesce(m.role = 'tool', e.generation_id IS NOT NULL)
                END
            )
        ) THEN
            RAISE EXCEPTION 'proposal % cites what its evidence is not', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_evidence_fits_its_kind
        AFTER INSERT OR UPDATE OF validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_evidence_fits();
    CREATE CONSTRAINT TRIGGER proposalevidence_fits_its_kind
        AFTER INSERT OR UPDATE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_evidence_fits();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_fits_its_kind ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_evidence_fits_its_kind ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_evidence_fits();
"""


class Migration(migrations.Migration):
    """What a proposal that holds cites is an original, never a copy, of the role that its kind of evidence is of."""

    dependencies = [("shadow", "0008_proposalevidence_stays")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
