from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_proved_as_its_kind_asks() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        proposal bigint;
        said record;
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
        SELECT p.kind, p.tone INTO said FROM shadow_shadowfactproposal p
            WHERE p.id = proposal AND p.validation_error = '' FOR NO KEY UPDATE;
        IF FOUND AND EXISTS (
            SELECT 1 FROM shadow_shadowproposalevidence e WHERE e.proposal_id = proposal
            HAVING (said.kind = 'about-user' AND NOT bool_and(e.kind IN ('max-stated', 'max-accepted')))
                OR (said.tone = 'decision' AND NOT bool_or(e.kind IN ('max-stated', 'max-accepted')))
                OR (said.kind = 'pointer' AND NOT bool_or(e.kind = 'tool-verified'))
        ) THEN
            RAISE EXCEPTION 'proposal % is not proved as its kind asks', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_proved_as_its_kind_asks
        AFTER INSERT OR UPDATE OF validation_error, kind, tone ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_proved_as_its_kind_asks();
    CREATE CONSTRAINT TRIGGER proposalevidence_proves_its_kind
        AFTER INSERT OR UPDATE OR DELETE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_proved_as_its_kind_asks();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_proves_its_kind ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_proved_as_its_kind_asks ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_proved_as_its_kind_asks();
"""


class Migration(migrations.Migration):
    """What holds of the person, and each decision, rests on the person's own words; where a document is, on a tool that
    found it."""

    dependencies = [("shadow", "0016_cites_what_was_told_a_model")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
