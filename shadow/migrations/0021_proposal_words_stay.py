from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_words_stay() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'the words of proposal % stay', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'proposal_words_stay', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER proposal_words_stay BEFORE UPDATE ON shadow_shadowfactproposal
        FOR EACH ROW WHEN (
            NEW.text <> OLD.text OR NEW.applies_to <> OLD.applies_to OR NEW.fingerprint <> OLD.fingerprint
            OR NEW.raw <> OLD.raw
        ) EXECUTE FUNCTION shadow_proposal_words_stay();
"""
BACKWARD = """
    DROP TRIGGER proposal_words_stay ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_words_stay();
"""


class Migration(migrations.Migration):
    """A proposal keeps the words with which it was made: by their fingerprint it is found when they are forgotten."""

    dependencies = [("shadow", "0020_evidence_goes_with_its_proposals")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
