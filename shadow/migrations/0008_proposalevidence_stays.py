from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposalevidence_stays() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        RAISE EXCEPTION 'evidence % stays with its proposal', OLD.id
            USING ERRCODE = 'check_violation', CONSTRAINT = 'proposalevidence_stays', TABLE = TG_TABLE_NAME;
    END
    $body$;
    CREATE TRIGGER proposalevidence_stays BEFORE UPDATE ON shadow_shadowproposalevidence
        FOR EACH ROW WHEN (NEW.proposal_id <> OLD.proposal_id) EXECUTE FUNCTION shadow_proposalevidence_stays();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_stays ON shadow_shadowproposalevidence;
    DROP FUNCTION shadow_proposalevidence_stays();
"""


class Migration(migrations.Migration):
    """Evidence does not move from one proposal to another, which would leave the first with less than it was held
    by."""

    dependencies = [("shadow", "0007_known_kinds")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
