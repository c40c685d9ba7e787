"""What the database itself refuses in this app's tables, a sentence for each rule."""

from django.db import IntegrityError
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from threads import rules as thread_rules
from threads.rules import RuleViolation

# Rules that a trigger holds, because no constraint can.
TRIGGERS: dict[str, Promise] = {
    "toolcall_stays_as_it_was_made": _("A tool call stays as a model made it."),
    "toolcall_ends_once": _("A tool call is answered once and ends in one way."),
    "toolcall_goes_with_its_result": _("A tool call that was answered does not go without its answer."),
    "toolcalls_go_with_their_results": _("Tool calls that were answered do not go without their answers."),
}
RULES: dict[str, Promise] = {
    **TRIGGERS,
    "taskframe_owner_is_the_threads": _("A turn belongs to the owner of its conversation."),
    "toolcall_owner_is_the_threads": _("A tool call belongs to the owner of its conversation."),
    "overflowevent_owner_is_the_threads": _("An overflow belongs to the owner of its conversation."),
    "inboxitem_owner_is_the_threads": _("What waits for a conversation belongs to its owner."),
    "turnevent_owner_is_the_threads": _("An event belongs to the owner of its conversation."),
    "importedconversation_owner_is_the_threads": _("An import belongs to the owner of its conversation."),
    "importedconversation_once_per_owner": _("A conversation of a file is imported once."),
    "importjob_one_open_per_owner": _("A person imports one file at a time."),
    "importjob_running_has_lease": _("An import that runs has a lease, and no other has."),
    "importjob_end_has_time": _("An import that ended says when."),
    "frame_one_running_per_thread": _("A conversation runs one turn at a time."),
    "frame_end_has_time": _("A turn that ended says when."),
    "frame_level_0_to_4": _("The level of a turn is 0 to 4."),
    "toolcall_once_per_message": _("A tool call is recorded once."),
    "inboxitem_client_key_once": _("What a client sends is taken once."),
    "inboxitem_level_0_to_4": _("The level of a waiting item is 0 to 4."),
    "turnevent_number_once": _("Events of a conversation are numbered."),
}


def refine(error: IntegrityError) -> RuleViolation | None:
    """The rule behind a refused write, of this app or of the records below it, or None."""
    return thread_rules.refine(error, RULES) or thread_rules.refine(error)
