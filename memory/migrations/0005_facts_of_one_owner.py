from django.db import migrations

# Constraint: table, its columns, what they refer to, what deleting that does.
REFERENCES = {
    "fact_superseded_by_same_owner": (
        "memory_fact",
        "superseded_by_id, owner_id",
        "memory_fact (id, owner_id)",
        "SET NULL (superseded_by_id)",
    ),
    "fact_island_of_same_owner": ("memory_fact", "island_id, owner_id", "threads_thread (id, owner_id)", "CASCADE"),
    "factevidence_owner_is_the_facts": (
        "memory_factevidence",
        "fact_id, owner_id",
        "memory_fact (id, owner_id)",
        "CASCADE",
    ),
    "factevidence_message_of_same_owner": (
        "memory_factevidence",
        "message_id, owner_id",
        "threads_message (id, owner_id)",
        "CASCADE",
    ),
    "factevidence_generation_of_same_owner": (
        "memory_factevidence",
        "generation_id, owner_id",
        "threads_generation (id, owner_id)",
        "CASCADE",
    ),
    "factevidence_accepted_by_of_same_owner": (
        "memory_factevidence",
        "accepted_by_id, owner_id",
        "threads_message (id, owner_id)",
        "CASCADE",
    ),
    "factuse_owner_is_the_facts": ("memory_factuse", "fact_id, owner_id", "memory_fact (id, owner_id)", "CASCADE"),
    "factuse_message_of_same_owner": (
        "memory_factuse",
        "message_id, owner_id",
        "threads_message (id, owner_id)",
        "CASCADE",
    ),
    "factuse_generation_of_same_owner": (
        "memory_factuse",
        "generation_id, owner_id",
        "threads_generation (id, owner_id)",
        "CASCADE",
    ),
    "episode_owner_is_the_threads": (
        "memory_episode",
        "thread_id, owner_id",
        "threads_thread (id, owner_id)",
        "CASCADE",
    ),
    "episode_generation_of_its_thread": (
        "memory_episode",
        "generation_id, thread_id",
        "threads_generation (id, thread_id)",
        "CASCADE",
    ),
    "digest_message_of_same_owner": (
        "memory_digest",
        "message_id, owner_id",
        "threads_message (id, owner_id)",
        "CASCADE",
    ),
    "digest_episode_of_same_owner": (
        "memory_digest",
        "episode_id, owner_id",
        "memory_episode (id, owner_id)",
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
    """A fact, its evidence, its uses and what was read belong to one owner: that of the messages, generations and
    conversations which they name."""

    dependencies = [("memory", "0004_facts"), ("threads", "0020_rows_with_their_owner")]

    operations = [migrations.RunSQL(sql=FORWARD, reverse_sql=BACKWARD)]
