"""What the database itself refuses in this app's tables, a sentence for each rule."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Rules that a trigger holds, because no constraint can.
TRIGGERS: dict[str, Promise] = {
    "fact_has_evidence": _("A fact has evidence, unless it was imported without any."),
    "fact_keeps_evidence": _("A fact goes with its last evidence."),
    "fact_never_active_again": _("What was superseded or retired comes back as a new fact."),
    "fact_stays_on_its_island": _("A fact proved on an island stays on it."),
    "factevidence_stays_on_its_island": _("Evidence from an island proves facts of that island alone."),
    "thread_takes_its_facts_along": _("A conversation that is isolated takes along what was proved in it."),
}
RULES: dict[str, Promise] = {
    **TRIGGERS,
    "messagechunk_owner_is_the_threads": _("A chunk belongs to the owner of its conversation."),
    "messagechunk_once_per_model": _("A stretch of a message is embedded once by each model."),
    "messagechunk_has_text": _("A chunk has text."),
    "embeddedthread_owner_is_the_threads": _("How far a conversation is embedded belongs to its owner."),
    "embeddedthread_once_per_model": _("How far a conversation is embedded is kept once for each model."),
    "embeddedthread_claim_ends": _("A claim on a conversation ends."),
    "fact_has_text": _("A fact has words."),
    "fact_isolated_has_island": _("An isolated fact stands on an island, an open one on none."),
    "fact_island_of_same_owner": _("A fact stands on an island of its owner's."),
    "fact_about_user_has_aspect": _("A fact about the person has an aspect, and no other has one."),
    "fact_of_known_kind": _("A fact is of a kind, an aspect, a tone and a status that there are."),
    "fact_superseded_by_newer": _("A fact is superseded by a newer one."),
    "fact_superseded_by_same_owner": _("A fact is superseded by one of the same owner."),
    "fact_superseded_says_so": _("A fact that another one replaced is superseded."),
    "fact_embedding_names_its_model": _("The vector of a fact names the model that made it."),
    "factevidence_one_source": _("Evidence is a message or a generation."),
    "factevidence_of_known_kind": _("Evidence is of a kind that there is."),
    "factevidence_accepted_says_where": _("What was accepted, and nothing else, names where."),
    "factevidence_once": _("The same evidence is kept once for a fact."),
    "factevidence_owner_is_the_facts": _("Evidence belongs to the owner of the fact."),
    "factevidence_message_of_same_owner": _("Evidence is a message of the fact's owner."),
    "factevidence_generation_of_same_owner": _("Evidence is a generation of the fact's owner."),
    "factevidence_accepted_by_of_same_owner": _("A fact is accepted by its owner."),
    "episode_one_running_per_thread": _("A conversation is read by one reader at a time."),
    "factuse_one_source": _("A fact was used by a message or a generation."),
    "factuse_once": _("The same use of a fact is counted once."),
    "factuse_owner_is_the_facts": _("A use belongs to the owner of the fact."),
    "factuse_message_of_same_owner": _("A fact is found by messages of its owner's."),
    "factuse_generation_of_same_owner": _("A fact opens generations of its owner's."),
    "episode_owner_is_the_threads": _("An episode belongs to the owner of its conversation."),
    "episode_generation_of_its_thread": _("An episode reads a generation of its own conversation."),
    "digest_message_of_same_owner": _("What was read belongs to the owner of the message."),
    "digest_episode_of_same_owner": _("What was read belongs to the owner of the episode."),
    "memory_digest_message_id_key": _("A message is read once."),
}
