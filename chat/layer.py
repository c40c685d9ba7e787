"""The channel layer."""

from channels.layers import InMemoryChannelLayer


class NotifyChannelLayer(InMemoryChannelLayer):
    """Group membership in this process's memory."""
