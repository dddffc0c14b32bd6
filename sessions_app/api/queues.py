"""How much waits: tasks in Valkey, exports and replays in Postgres, statements for a connection."""

import asyncio
from collections.abc import Awaitable
from typing import Any, cast

from celery import current_app
from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from sessions_app.api.runtime import Runtime

_PATIENCE_S = 1.0
_TAKEN = "unacked"
"""Where the broker keeps messages that a worker holds."""
_UNFINISHED = """
    SELECT (SELECT count(*) FROM trainer_export_exportjob WHERE state IN ('pending', 'running')),
        (SELECT count(*) FROM sessions_app_whatifjob WHERE state IN ('pending', 'running'))
"""


async def lengths(state: Runtime) -> dict[str, int]:
    """By queue; those of a broker that does not answer are left out, so unknown is never 0."""
    exports, replays = await state.db.fetch_one(_UNFINISHED, ()) or (0, 0)
    here = {"exports": exports, "replays": replays, "connections": state.db.waiting}
    return {**here, **await _tasks()}


async def _tasks() -> dict[str, int]:
    client = Redis.from_url(
        settings.REDIS_URL, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            waiting = await cast(Awaitable[Any], client.llen(current_app.conf.task_default_queue))
            taken = await cast(Awaitable[Any], client.hlen(_TAKEN))
    except (RedisError, OSError, TimeoutError):
        return {}
    finally:
        await client.aclose()
    return {"tasks": int(waiting), "tasks_taken": int(taken)}
