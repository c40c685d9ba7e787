"""The socket's address."""

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path

from chat.consumers import ChatConsumer

# A page of another site cannot open the socket: the origin must be one of ALLOWED_HOSTS.
websocket_application = AllowedHostsOriginValidator(
    AuthMiddlewareStack(URLRouter([path("ws/chat/", ChatConsumer.as_asgi())]))
)
