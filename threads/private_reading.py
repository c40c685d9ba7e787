"""Reading somebody else's private text: a permission of its own, and every reading leaves a row."""

from django.core.exceptions import PermissionDenied

from accounts.models import User
from threads.models import PrivateReading, Thread

READ_PRIVATE = "threads.read_private"


def may_read(reader: User) -> bool:
    """Whether a staff member may read private text at all."""
    return bool(reader.is_active and reader.is_staff and reader.has_perm(READ_PRIVATE))


def record_reading(
    reader: User, *, owner_id: int | None, thread: Thread | None, what: PrivateReading.What, first_id: int, last_id: int
) -> None:
    """Note that `reader` is about to see the rows `first_id` to `last_id` of `owner_id`'s. Raises PermissionDenied when
    they may not.

    To be called before the text is fetched: what could not be noted is not shown.
    """
    if not may_read(reader):
        raise PermissionDenied
    PrivateReading.objects.create(
        reader=reader, owner_id=owner_id, thread=thread, what=what, first_id=first_id, last_id=last_id
    )
