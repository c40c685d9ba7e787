"""What memory tells the apps above."""

from django.dispatch import Signal

# Sent in a worker, soon after a thread came to rest, with `thread` (its id) and `reason` (a SettledReason): for what
# would cost the turn itself a statement and can wait for a second.
rested = Signal()
