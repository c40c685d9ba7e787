"""The official SDK, loaded when the first call needs it: its many models take longer to build than all the rest of a
command's start, and most commands call no model. Processes that do load it as they start (`maxclaw.apps`)."""

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["anthropic"]

if TYPE_CHECKING:
    import anthropic
else:
    from django.utils.functional import SimpleLazyObject

    anthropic = SimpleLazyObject(partial(import_module, "anthropic"))
