"""The ASGI application: pages and API over HTTP, sockets, and the turns themselves as tasks beside them.

Lifespan: the bell and the turn runner start before the first request and end with the server. A server
without lifespan support serves pages and sockets, and runs no turn.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Any

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "maxclaw.settings")

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def lifespan(_scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Start what runs beside the requests, and end it: each part in the reverse order, however the others
    end."""
    from agent.bell import Bell
    from agent.runner import Runner
    from maxclaw.database_threads import close_all
    from maxclaw.garbage import freeze_start_up

    await receive()  # lifespan.startup: nothing else can come first
    runner = Runner()
    try:
        await Bell.shared().start()
        await runner.start()
        freeze_start_up()
    except Exception as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        raise
    await send({"type": "lifespan.startup.complete"})
    await receive()  # lifespan.shutdown
    try:
        await runner.stop()
    finally:
        await Bell.shared().stop()
        close_all()
    await send({"type": "lifespan.shutdown.complete"})


def build_application() -> ProtocolTypeRouter:
    """The application of one process. Loads the apps first: what is routed to needs them."""
    http_application = get_asgi_application()
    from chat.routing import websocket_application

    return ProtocolTypeRouter({"http": http_application, "websocket": websocket_application, "lifespan": lifespan})


application = build_application()
