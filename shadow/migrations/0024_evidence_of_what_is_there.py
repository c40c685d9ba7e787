from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposalevidence_of_what_is_there() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF (NEW.message_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM threads_message m WHERE m.id = NEW.message_id))
            OR (NEW.accepted_by_id IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM threads_message m WHERE m.id = NEW.accepted_by_id))
            OR (NEW.generation_id IS NOT NULL
                AND NOT EXISTS (SELECT 1 FROM threads_generation g WHERE g.id = NEW.generation_id))
        THEN
            RAISE EXCEPTION 'proposal % cites what is not there', NEW.proposal_id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'proposalevidence_of_what_is_there',
                    TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER proposalevidence_of_what_is_there BEFORE INSERT OR UPDATE ON shadow_shadowproposalevidence
        FOR EACH ROW EXECUTE FUNCTION shadow_proposalevidence_of_what_is_there();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_of_what_is_there ON shadow_shadowproposalevidence;
    DROP FUNCTION shadow_proposalevidence_of_what_is_there();
"""


class Migration(migrations.Migration):
    """Evidence names rows that are there when it is written, since rules that look at what is cited would find nothing
    to refuse in what comes later. What is cited stays as it is by rules of its own."""

    dependencies = [("shadow", "0023_proposal_id_stays")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
