from django.db import migrations

FORWARD = """
    CREATE FUNCTION llm_modelcall_figures_frozen() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.outcome <> '' AND (
            NEW.outcome, NEW.prices, NEW.cost, NEW.input_tokens, NEW.output_tokens,
            NEW.cache_read_tokens, NEW.cache_write_5m_tokens, NEW.cache_write_1h_tokens
        ) IS DISTINCT FROM (
            OLD.outcome, OLD.prices, OLD.cost, OLD.input_tokens, OLD.output_tokens,
            OLD.cache_read_tokens, OLD.cache_write_5m_tokens, OLD.cache_write_1h_tokens
        ) THEN
            RAISE EXCEPTION 'the figures of model call % are frozen', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'modelcall_figures_frozen',
                    TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
    CREATE TRIGGER modelcall_figures_frozen BEFORE UPDATE ON llm_modelcall
        FOR EACH ROW EXECUTE FUNCTION llm_modelcall_figures_frozen();
"""
BACKWARD = """
    DROP TRIGGER modelcall_figures_frozen ON llm_modelcall;
    DROP FUNCTION llm_modelcall_figures_frozen();
"""


class Migration(migrations.Migration):
    """What a call used and cost is a receipt: with its outcome, it is written once."""

    dependencies = [("llm", "0003_modelcall_estimated_tokens")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
