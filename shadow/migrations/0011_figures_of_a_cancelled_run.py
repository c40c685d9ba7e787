from django.db import migrations

FORWARD = """
    CREATE OR REPLACE FUNCTION shadow_shadowrun_finished_stays() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    DECLARE
        figures constant text[] := ARRAY['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_5m_tokens',
            'cache_write_1h_tokens', 'duration_ms', 'prices', 'cost'];
        was jsonb := to_jsonb(OLD) - 'call';
        becomes jsonb := to_jsonb(NEW) - 'call';
    BEGIN
        IF OLD.status = 'cancelled' AND num_nonnulls(OLD.input_tokens, OLD.output_tokens, OLD.cache_read_tokens,
                OLD.cache_write_5m_tokens, OLD.cache_write_1h_tokens, OLD.duration_ms, OLD.prices, OLD.cost) = 0 THEN
            was := was - figures;
            becomes := becomes - figures;
        END IF;
        IF OLD.status IN ('completed', 'failed', 'cancelled') AND (
            becomes <> was OR (NEW.call IS NOT NULL AND NEW.call IS DISTINCT FROM OLD.call)
        ) THEN
            RAISE EXCEPTION 'shadow run % is over', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'shadowrun_finished_stays', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
"""
BACKWARD = """
    CREATE OR REPLACE FUNCTION shadow_shadowrun_finished_stays() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, public AS $body$
    BEGIN
        IF OLD.status IN ('completed', 'failed', 'cancelled') AND (
            to_jsonb(NEW) - 'call' <> to_jsonb(OLD) - 'call' OR (NEW.call IS NOT NULL AND NEW.call <> OLD.call)
        ) THEN
            RAISE EXCEPTION 'shadow run % is over', OLD.id
                USING ERRCODE = 'check_violation', CONSTRAINT = 'shadowrun_finished_stays', TABLE = TG_TABLE_NAME;
        END IF;
        RETURN NEW;
    END
    $body$;
"""


class Migration(migrations.Migration):
    """A run that the person's words cancel is over before its request is: what that used is written once, later. And a
    run that made no call gets none when it is over."""

    dependencies = [("shadow", "0010_known_kinds_of_runs")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
