from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_cites_what_stands() RETURNS trigger LANGUAGE plpgsql
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
                    SELECT 1 FROM threads_message m
                        WHERE m.generation_id = e.generation_id AND (m.left_because <> 'superseded' OR EXISTS (
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
    CREATE CONSTRAINT TRIGGER proposal_cites_what_stands
        AFTER INSERT OR UPDATE OF validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_cites_what_stands();
    CREATE CONSTRAINT TRIGGER proposalevidence_stands
        AFTER INSERT OR UPDATE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_cites_what_stands();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_stands ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_cites_what_stands ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_cites_what_stands();
"""


class Migration(migrations.Migration):
    """What a proposal that holds cites was neither rewound nor deleted when it was written: a row counts as standing
    while a copy of it in its conversation does. What is rewound or deleted later takes nothing back, since a person may
    undo both."""

    dependencies = [("shadow", "0011_figures_of_a_cancelled_run")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
