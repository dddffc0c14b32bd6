"""ASGI entry: Django, and the start and end of the server's life."""

import os

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tito_project.settings")

_django = get_asgi_application()


async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Requests go to Django; the lifespan protocol is answered here."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    else:
        await _django(scope, receive, send)


async def _live(receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
