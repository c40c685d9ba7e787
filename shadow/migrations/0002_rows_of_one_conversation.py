from django.db import migrations

# Constraint: table, its columns, what they refer to, what deleting that does.
REFERENCES = {
    "shadowcursor_owner_is_the_threads": (
        "shadow_shadowcursor",
        "thread_id, owner_id",
        "threads_thread (id, owner_id)",
        "CASCADE",
    ),
    "shadowbaseline_owner_is_the_threads": (
        "shadow_shadowbaseline",
        "thread_id, owner_id",
        "threads_thread (id, owner_id)",
        "CASCADE",
    ),
    "shadowbaseline_generation_of_its_thread": (
        "shadow_shadowbaseline",
        "generation_id, thread_id",
        "threads_generation (id, thread_id)",
        "CASCADE",
    ),
    "shadowrun_owner_is_the_threads": (
        "shadow_shadowrun",
        "thread_id, owner_id",
        "threads_thread (id, owner_id)",
        "CASCADE",
    ),
    "shadowrun_generation_of_its_thread": (
        "shadow_shadowrun",
        "generation_id, thread_id",
        "threads_generation (id, thread_id)",
        "CASCADE",
    ),
    "proposal_owner_is_the_threads": (
        "shadow_shadowfactproposal",
        "thread_id, owner_id",
        "threads_thread (id, owner_id)",
        "CASCADE",
    ),
    "proposal_run_of_its_thread": (
        "shadow_shadowfactproposal",
        "run_id, thread_id, owner_id",
        "shadow_shadowrun (id, thread_id, owner_id)",
        "CASCADE",
    ),
    "proposal_replaces_fact_of_same_owner": (
        "shadow_shadowfactproposal",
        "replaces_fact_id, owner_id",
        "memory_fact (id, owner_id)",
        "SET NULL (replaces_fact_id)",
    ),
    "proposal_replaces_proposal_of_its_thread": (
        "shadow_shadowfactproposal",
        "replaces_proposal_id, thread_id",
        "shadow_shadowfactproposal (id, thread_id)",
        "SET NULL (replaces_proposal_id)",
    ),
    "proposal_fact_of_same_owner": (
        "shadow_shadowfactproposal",
        "fact_id, owner_id",
        "memory_fact (id, owner_id)",
        "SET NULL (fact_id)",
    ),
    "proposalevidence_owner_is_the_proposals": (
        "shadow_shadowproposalevidence",
        "proposal_id, owner_id",
        "shadow_shadowfactproposal (id, owner_id)",
        "CASCADE",
    ),
    "proposalevidence_message_of_same_owner": (
        "shadow_shadowproposalevidence",
        "message_id, owner_id",
        "threads_message (id, owner_id)",
        "CASCADE",
    ),
    "proposalevidence_generation_of_same_owner": (
        "shadow_shadowproposalevidence",
        "generation_id, owner_id",
        "threads_generation (id, owner_id)",
        "CASCADE",
    ),
    "proposalevidence_accepted_by_of_same_owner": (
        "shadow_shadowproposalevidence",
        "accepted_by_id, owner_id",
        "threads_message (id, owner_id)",
        "CASCADE",
    ),
    "proposalreview_owner_is_the_proposals": (
        "shadow_proposalreview",
        "proposal_id, owner_id",
        "shadow_shadowfactproposal (id, owner_id)",
        "CASCADE",
    ),
}
FORWARD = "".join(
    f"""
    ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({columns}) REFERENCES {target}
        ON DELETE {deleted} DEFERRABLE INITIALLY DEFERRED;
    """
    for name, (table, columns, target, deleted) in REFERENCES.items()
)
BACKWARD = "".join(f"ALTER TABLE {table} DROP CONSTRAINT {name};" for name, (table, *_rest) in REFERENCES.items())


class Migration(migrations.Migration):
    """Cursors, runs, proposals and their evidence belong to one conversation and its owner."""

    dependencies = [
        ("shadow", "0001_initial"),
        ("memory", "0005_facts_of_one_owner"),
        ("threads", "0020_rows_with_their_owner"),
    ]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
