"""What open pages hear of at once: a conversation was deleted, the user signed out in another tab, a login ended with
its password or its account."""

from typing import Any

from django.contrib.auth.signals import user_logged_out
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from accounts.models import User
from agent.bell import ring
from chat.layer import ring_group, thread_group, user_group
from threads.models import Thread


@receiver(post_delete, sender=Thread, dispatch_uid="tell_pages_of_deleted_thread")
def tell_pages_of_deleted_thread(instance: Thread, **_kwargs: Any) -> None:
    """Rings in the deleting transaction: a deletion that is rolled back is none."""
    ring_group(thread_group(instance.pk), {"type": "thread.gone", "thread": instance.pk})
    ring("list", {"owner": instance.owner_id})


@receiver(user_logged_out, dispatch_uid="tell_pages_of_signing_out")
def tell_pages_of_signing_out(user: User | None, **_kwargs: Any) -> None:
    """Sockets of other logins of the user find that theirs still holds."""
    if user is not None:
        ring_group(user_group(user.pk), {"type": "login.ended"})


@receiver(post_save, sender=User, dispatch_uid="tell_pages_of_another_password")
def tell_pages_of_another_password(instance: User, created: bool, **_kwargs: Any) -> None:
    """Whoever changes it, on whatever way: logins that began with the old password are over."""
    # Django keeps a new password's words on the object until it is saved, and not where it only hashes it anew.
    new_password = getattr(instance, "_password", None) is not None
    if not created and (new_password or not instance.is_active):
        ring_group(user_group(instance.pk), {"type": "login.ended"})
