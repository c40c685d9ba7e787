import re

from django.db import migrations, models

NAMES = re.compile(r"\s*([fp]):(\d{1,100})\s*")
WORDS = "NEW.text <> OLD.text OR NEW.applies_to <> OLD.applies_to OR NEW.fingerprint <> OLD.fingerprint"
WORDS += " OR NEW.raw <> OLD.raw"
NUMBERS = " OR NEW.names_fact IS DISTINCT FROM OLD.names_fact OR NEW.names_proposal IS DISTINCT FROM OLD.names_proposal"
DROP = "SET CONSTRAINTS ALL IMMEDIATE; DROP TRIGGER proposal_words_stay ON shadow_shadowfactproposal;"
STAY = """
    CREATE TRIGGER proposal_words_stay BEFORE UPDATE ON shadow_shadowfactproposal
        FOR EACH ROW WHEN ({columns}) EXECUTE FUNCTION shadow_proposal_words_stay();
"""


def fill(apps, _schema_editor):
    proposals = apps.get_model("shadow", "ShadowFactProposal").objects
    for pk, raw in proposals.filter(raw__has_key="replaces").values_list("pk", "raw").iterator():
        said = raw.get("replaces") if isinstance(raw, dict) else None
        found = NAMES.fullmatch(said) if isinstance(said, str) else None
        if found is not None and int(found.group(2)) < 2**63:
            column = {"f": "names_fact", "p": "names_proposal"}[found.group(1)]
            proposals.filter(pk=pk).update(**{column: int(found.group(2))})


class Migration(migrations.Migration):
    """What an item says it replaces is kept as it is read, whether the item holds or not, so that it is found when that
    is forgotten: neither spelling nor length hides it. It stays as the words do."""

    dependencies = [("shadow", "0024_evidence_of_what_is_there")]

    operations = [
        migrations.RunSQL("SET CONSTRAINTS ALL IMMEDIATE", "SET CONSTRAINTS ALL IMMEDIATE"),
        migrations.AddField(
            model_name="shadowfactproposal",
            name="names_fact",
            field=models.BigIntegerField(
                blank=True, help_text="id of the fact that the item says it replaces, there or not", null=True
            ),
        ),
        migrations.AddField(
            model_name="shadowfactproposal",
            name="names_proposal",
            field=models.BigIntegerField(
                blank=True, help_text="id of the proposal that the item says it replaces, there or not", null=True
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
        migrations.RunSQL(
            sql=DROP + STAY.format(columns=WORDS + NUMBERS), reverse_sql=DROP + STAY.format(columns=WORDS)
        ),
    ]
