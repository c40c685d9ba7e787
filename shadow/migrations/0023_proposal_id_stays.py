from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_id_stays() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'proposal % keeps its number', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'proposal_id_stays', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER proposal_id_stays BEFORE UPDATE ON shadow_shadowfactproposal
        FOR EACH ROW WHEN (
            NEW.id <> OLD.id
        ) EXECUTE FUNCTION shadow_proposal_id_stays();
"""
BACKWARD = """
    DROP TRIGGER proposal_id_stays ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_id_stays();
"""


class Migration(migrations.Migration):
    """A proposal keeps its number, by which its evidence finds it."""

    dependencies = [("shadow", "0022_isolated_in_whatever_order")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
