"""What the database itself refuses in this app's tables, a sentence for each rule.

Service code checks all of it first and answers better; the database holds it even when service code is wrong.
The name of a rule is the name of its constraint or trigger, and of the migration that made it.
"""

from collections.abc import Mapping

from django.db import IntegrityError
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Rules that a trigger holds, because no constraint can.
TRIGGERS: dict[str, Promise] = {
    "message_wire_written_once": _("What was sent to or came from a model never changes."),
    "message_quote_frozen": _("A quote never changes once it was given."),
    "message_leaves_once": _("A message leaves its context once, and what was rewound stays so."),
    "message_copied_from_frozen": _("A copy stays the copy of one message."),
    "message_stays_where_it_was_said": _("A message stays in the conversation and generation in which it was said."),
    "message_stays_as_it_was_said": _("Who said a message, and whether a model may read it, never changes."),
    "generation_opening_written_once": _("The opening context of a generation never changes."),
    "generation_opened_with_frozen": _("The summary and the instructions that an opening holds never change."),
    "generation_ends_once": _("A generation ends once."),
    "generation_stays_in_its_thread": _("A generation stays in its conversation."),
    "generation_ordinals_without_gaps": _("Generations of a conversation are numbered without gaps."),
    "message_long_is_indexed": _("A long message is in the index of long messages, as it is."),
    "messagegrams_of_every_long_message": _("No long message loses its place in that index."),
}
# Triggers that keep one table in step with another and refuse nothing.
KEEPING_STEP: dict[str, Promise] = {
    "message_leaves_its_index": _("What is in that index of an old text goes with it."),
}
RULES: dict[str, Promise] = {
    **TRIGGERS,
    "thread_one_main_per_owner": _("Every account has one main conversation."),
    "thread_isolated_has_island": _("An isolated conversation stands on an island, an open one on none."),
    "thread_running_has_lease": _("A running conversation has a lease, a resting one has none."),
    "thread_parent_of_same_owner": _("A task belongs to the owner of the conversation that started it."),
    "thread_island_of_same_owner": _("An island belongs to one owner."),
    "generation_owner_is_the_threads": _("A generation belongs to the owner of its conversation."),
    "generation_ordinal_once": _("A conversation has one generation of each number."),
    "generation_one_live_per_thread": _("A conversation has one live generation."),
    "generation_cut_counts_up": _("Cuts are counted from zero."),
    "message_owner_is_the_threads": _("A message belongs to the owner of its conversation."),
    "message_generation_of_its_thread": _("A message belongs to a generation of its own conversation."),
    "privatereading_owner_is_the_threads": _("A reading is noted with the owner of the conversation that was read."),
    "messagegrams_owner_is_the_threads": _("The index of a message has the owner of its conversation."),
    "message_left_says_why": _("A message that left its context says why."),
    "message_no_copy_of_itself": _("A message is no copy of itself."),
}


class RuleViolation(Exception):
    """A rule of the database refused a write. `name` names the rule; the text is its sentence."""

    def __init__(self, name: str, sentence: str) -> None:
        super().__init__(sentence)
        self.name = name


def refine(error: IntegrityError, rules: Mapping[str, Promise] = RULES) -> RuleViolation | None:
    """The rule behind a refused write, or None when it is none of `rules`."""
    diagnosis = getattr(error.__cause__, "diag", None)
    name = getattr(diagnosis, "constraint_name", None)
    if name is None or name not in rules:
        return None
    return RuleViolation(name, str(rules[name]))
