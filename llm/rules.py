"""What the database itself refuses in this app's tables, a sentence for each rule.

The name of a rule is the name of its trigger, and of the migration that made it.
"""

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Rules that a trigger holds, because no constraint can.
TRIGGERS: dict[str, Promise] = {
    "modelcall_figures_frozen": _("What a finished model call used and cost never changes."),
}
RULES: dict[str, Promise] = {**TRIGGERS}
