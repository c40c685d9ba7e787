from django.db import migrations

FORWARD = """
    CREATE FUNCTION shadow_proposal_results_hold() RETURNS trigger LANGUAGE plpgsql
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
                JOIN threads_message m ON m.id IN (e.message_id, e.accepted_by_id) AND m.role = 'tool'
                LEFT JOIN agent_toolcall c ON c.result_id = m.id AND c.thread_id = m.thread_id
            WHERE e.proposal_id = proposal AND NOT coalesce(
                NOT m.is_error AND c.status = 'done' AND CASE
                    -- The person's own words among results are their answers to question cards.
                    WHEN e.kind IN ('max-stated', 'max-accepted') THEN c.tool = 'ask_user_question'
                    -- What only shows old words again proves nothing of its own.
                    ELSE c.tool NOT IN ('ask_user_question', 'search_memory', 'message_context_read',
                                        'message_history_read', 'coldcontext_query')
                END,
                false
            )
        ) THEN
            RAISE EXCEPTION 'proposal % cites a result that does not hold', proposal
                USING ERRCODE = 'check_violation', CONSTRAINT = TG_NAME, TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NULL;
    END
    $body$;
    CREATE CONSTRAINT TRIGGER proposal_cites_results_that_hold
        AFTER INSERT OR UPDATE OF validation_error ON shadow_shadowfactproposal
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_results_hold();
    CREATE CONSTRAINT TRIGGER proposalevidence_result_holds
        AFTER INSERT OR UPDATE ON shadow_shadowproposalevidence
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION shadow_proposal_results_hold();
"""
BACKWARD = """
    DROP TRIGGER proposalevidence_result_holds ON shadow_shadowproposalevidence;
    DROP TRIGGER proposal_cites_results_that_hold ON shadow_shadowfactproposal;
    DROP FUNCTION shadow_proposal_results_hold();
"""


class Migration(migrations.Migration):
    """A result that a proposal which holds cites is of a call that succeeded: as the person's words, of a question card;
    as proof of the world, of any other tool that does not merely show old words again."""

    dependencies = [
        ("shadow", "0012_proposal_cites_what_stands"),
        ("agent", "0001_initial"),
    ]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
