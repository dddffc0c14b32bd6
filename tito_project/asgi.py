"""ASGI entry: Django, and the start and end of the server's life."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.core.asgi import get_asgi_application

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tito_project.settings")

_django = get_asgi_application()


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Requests go to Django; the lifespan protocol is answered here."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    else:
        await _django(scope, receive, send)


async def _live(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
