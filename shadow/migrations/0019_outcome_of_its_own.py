from django.db import migrations

FUNCTION = """
    CREATE OR REPLACE FUNCTION shadow_proposal_cites_what_stands() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        proposal bigint;
        gone boolean;
    BEGIN
        IF TG_TABLE_NAME = 'shadow_shadowfactproposal' THEN
            proposal := NEW.id;
        ELSE
            proposal := NEW.proposal_id;
        END IF;
        -- The row's lock: of two transactions, one that adds evidence and one that lifts the error, the second sees
        -- what the first did.
        SELECT t.deleted IS NOT NULL INTO gone FROM shadow_shadowfactproposal p
            JOIN threads_thread t ON t.id = p.thread_id
            WHERE p.id = proposal AND p.validation_error = '' FOR NO KEY UPDATE OF p;
        IF FOUND AND (
            gone
            OR EXISTS (
                SELECT 1 FROM shadow_shadowproposalevidence e
                    JOIN threads_message m ON m.id IN (e.message_id, e.accepted_by_id)
                WHERE e.proposal_id = proposal AND m.left_because = 'superseded' AND NOT EXISTS (
                    SELECT 1 FROM threads_message c
                        WHERE c.copied_from_id = m.id AND c.thread_id = m.thread_id AND c.left_because <> 'superseded'
                )
            )
            OR EXISTS (
                SELECT 1 FROM shadow_shadowproposalevidence e
                WHERE e.proposal_id = proposal AND e.generation_id IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM threads_message m {join}
                        WHERE m.generation_id = e.generation_id {own}AND (m.left_because <> 'superseded' OR EXISTS (
                            SELECT 1 FROM threads_message c WHERE c.copied_from_id = m.id
                                AND c.thread_id = m.thread_id AND c.left_because <> 'superseded'
                        ))
                )
            )
        ) THEN
            RAISE EXCEPTION 'proposal % cites what does not stand', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
"""
# A copy within the conversation is as own as what it was copied from.
OWN = """
                            AND m.model_visible AND m.wire IS NOT NULL
                            AND coalesce(m.meta->>'source', '') <> 'framework'
                            AND coalesce(m.meta->>'source', '') NOT LIKE 'kernel/%'
                            AND (m.copied_from_id IS NULL OR (o.thread_id = m.thread_id AND o.copied_from_id IS NULL))
                            """
FORWARD = FUNCTION.replace("{join}", "LEFT JOIN threads_message o ON o.id = m.copied_from_id").replace("{own}", OWN)
BACKWARD = FUNCTION.replace(" {join}", "").replace("{own}", "")


class Migration(migrations.Migration):
    """The outcome of a generation proves something of its conversation where something stands in it that a model was
    told and that was said there, and not in the conversation alone that it was copied from."""

    dependencies = [("shadow", "0018_no_room")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
