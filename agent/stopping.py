"""Stop: names the turn it means, is stored and rung in one transaction, and aborts at once wherever the turn runs."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agent import ending, speaking
from agent.bell import ring
from agent.models import TaskFrame
from agent.refusals import Refused
from threads.access import NoSuchThread, access_thread
from threads.models import Thread
from threads.transcript import lapsed


def stop(user: User, channel: str, frame_id: Any) -> TaskFrame:
    """Stop the turn `frame_id` of the user's thread. A turn that ended meanwhile is left as it ended.

    Raises Refused for an unknown thread or turn, in the same words for another user's.
    """
    try:
        thread = access_thread(user, channel)
    except NoSuchThread:
        raise speaking.no_such_thread() from None
    with transaction.atomic():
        thread = speaking.locked(thread)
        wanted = frame_id if isinstance(frame_id, int) and not isinstance(frame_id, bool) else 0
        frame = TaskFrame.objects.filter(thread=thread, owner_id=thread.owner_id, pk=wanted).first()
        if frame is None:
            raise Refused("no-such-turn", _("There is no such turn to stop."))
        if frame.state in (TaskFrame.State.DONE, TaskFrame.State.FAILED):
            return frame
        if thread.state == Thread.State.RUNNING and not lapsed(thread):
            frame.stop_asked = True
            frame.save(update_fields=["stop_asked"])
            ring("stop", {"thread": thread.pk, "frame": frame.pk})
            return frame
        # Nobody runs it: it waits for an answer, stands suspended, or its holder is gone.
        ending.interrupt_and_settle(thread, TaskFrame.EndReason.STOPPED, frame=frame)
        return frame
