"""Whether handing content over asks the person first, and in which words. The page adds none of its own."""

from django.utils.translation import gettext as _

from agent.quoting import CONVERSATION
from threads.models import Thread
from threads.visibility import Level, can_deliver, category_readable


def title_of(thread: Thread) -> str:
    """What a person calls a conversation; the main one and a new one have no title of their own."""
    return thread.title or (_("Main") if thread.kind == Thread.Kind.MAIN else _("New conversation"))


def boundaries(source: Level, target: Level, target_title: str) -> list[str]:
    """One sentence for each boundary that content at `source` would cross; none where it flows by itself, which is the
    one rule of `threads.visibility`."""
    crossed = []
    if not can_deliver(source, target):
        crossed.append(_("The source is isolated, and “%(target)s” is not on its island.") % {"target": target_title})
    if not category_readable(target.category, source.category):
        names = {"target": target_title, "source": source.category, "category": target.category}
        crossed.append(
            _("The source belongs to the category “%(source)s”, and “%(target)s” to “%(category)s”.") % names
            if target.category
            else _("The source belongs to the category “%(source)s”, and “%(target)s” to none.") % names
        )
    return crossed


def confirm_text(kind: str, source: Level, target: Thread) -> str:
    """The question to confirm, which names the target and each boundary crossed; blank when there is nothing to
    confirm."""
    title = title_of(target)
    crossed = boundaries(source, Level.of_thread(target), title)
    if not crossed:
        return ""
    if kind == CONVERSATION:
        asked = _("Hand this conversation over to “%(target)s” all the same?")
        effect = _("Its title and address are handed over; its content stays as unreadable there as before.")
    else:
        asked = _("Hand this message over to “%(target)s” all the same?")
        effect = _("Its text is copied there and stays there.")
    return " ".join([*crossed, effect, asked % {"target": title}])
