"""ASGI entry: the endpoints that agents call directly, everything else through Django, and the server's
life.
"""

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tito_project.settings")

_django = get_asgi_application()
_Send = Callable[[Mapping[str, Any]], Awaitable[None]]
"""What Django's handler takes for a send channel."""

from sessions_app.api import asgi as direct  # noqa: E402  (needs the applications to be loaded)
from sessions_app.api import runtime  # noqa: E402
from sessions_app.api.wiring import build_profile, conninfo  # noqa: E402

# The screens are loaded before anybody is served, not by the first who asks for one.
from tito_project import urls as _urls  # noqa: E402, F401
from tito_project.draining import drained_first  # noqa: E402

logger = logging.getLogger(__name__)


async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Agents' endpoints are served on the loop; the rest is Django's."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    with runtime.answering():
        await _answer(scope, receive, send)


async def _answer(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    if scope["type"] == "http" and (found := direct.route(scope["path"])):
        await direct.serve(scope, receive, send, *found)
        return
    await _django(cast(dict[str, Any], scope), receive, cast(_Send, send))


async def _live(receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    await receive()
    try:
        started = await runtime.start(conninfo(), build_profile, settings.TITO)
    except Exception as error:
        logger.error("cannot start: %s", error)
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        return
    await send({"type": "lifespan.startup.complete"})
    with drained_first(started.drain):
        await receive()
    await runtime.stop(started)
    await send({"type": "lifespan.shutdown.complete"})
