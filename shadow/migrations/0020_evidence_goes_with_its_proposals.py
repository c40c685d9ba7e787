from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_evidence_goes_with_its_proposals() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        -- Afterwards, so that both tables may be emptied by one statement.
        IF EXISTS (SELECT 1 FROM shadow_shadowfactproposal p WHERE p.validation_error = '') THEN
            RAISE EXCEPTION 'proposals that hold would be left without evidence'
                USING ERRCODE = 'check_violation', CONSTRAINT = 'proposalevidence_goes_with_its_proposals',
                    TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE TRIGGER proposalevidence_goes_with_its_proposals AFTER TRUNCATE ON shadow_shadowproposalevidence
        FOR EACH STATEMENT EXECUTE FUNCTION shadow_evidence_goes_with_its_proposals();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_goes_with_its_proposals ON shadow_shadowproposalevidence;
    DROP FUNCTION shadow_evidence_goes_with_its_proposals();
"""


class Migration(migrations.Migration):
    """Truncating the table of evidence, which asks no rule of single rows, leaves no proposal that holds behind."""

    dependencies = [("shadow", "0019_outcome_of_its_own")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
