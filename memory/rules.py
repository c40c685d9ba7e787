"""What the database itself refuses in this app's tables, a sentence for each rule."""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Rules that a trigger holds, because no constraint can: none so far.
TRIGGERS: dict[str, Promise] = {}
RULES: dict[str, Promise] = {
    **TRIGGERS,
    "messagechunk_owner_is_the_threads": _("A chunk belongs to the owner of its conversation."),
    "messagechunk_once_per_model": _("A stretch of a message is embedded once by each model."),
    "messagechunk_has_text": _("A chunk has text."),
    "embeddedthread_owner_is_the_threads": _("How far a conversation is embedded belongs to its owner."),
    "embeddedthread_once_per_model": _("How far a conversation is embedded is kept once for each model."),
    "embeddedthread_claim_ends": _("A claim on a conversation ends."),
}
