"""GET /health: this process answers. GET /ready: everything a turn needs answers."""

import asyncio
from typing import Any

from django.db.migrations.loader import MigrationLoader
from django.http.response import HttpResponseBase
from rest_framework.request import Request

from sessions_app.api import runtime
from sessions_app.api.direct import DirectView, json_response
from sessions_app.api.runtime import Runtime
from sessions_app.turns.profiles import DEFAULT_PROFILE

_PATIENCE_S = 3.0


class HealthView(DirectView):
    """Liveness."""

    http_method_names = ["get"]

    async def get(self, request: Request) -> HttpResponseBase:
        """Always 200 while the loop turns."""
        instance = runtime.current().configuration.instance_id
        return json_response({"status": "ok", "session_server_instance_id": instance})


class ReadyView(DirectView):
    """Readiness."""

    http_method_names = ["get"]

    async def get(self, request: Request) -> HttpResponseBase:
        """200 with every part `ok`, else 503 with the parts that are not. Warnings stop nothing."""
        state = runtime.current()
        names = ("database", "migrations", "broker", "engine", "tokenizer")
        checks = (_database(state), _migrations(state), _broker(), _engine(state), _tokenizer(state))
        parts = dict(zip(names, await asyncio.gather(*(_told(check) for check in checks)), strict=True))
        ready = all(part == "ok" for part in parts.values()) and not state.draining
        profile = await state.profiles.get(DEFAULT_PROFILE)
        body = {
            "ready": ready,
            "parts": parts,
            "draining": state.draining,
            "warnings": list(profile.warnings),
        }
        return json_response(body, 200 if ready else 503)


async def _told(check: Any) -> str:
    try:
        return await asyncio.wait_for(check, _PATIENCE_S)
    except TimeoutError:
        return f"no answer within {_PATIENCE_S:g} s"
    except Exception as error:
        return f"{type(error).__name__}"


async def _database(state: Runtime) -> str:
    await state.db.fetch_one("SELECT 1", ())
    return "ok"


async def _migrations(state: Runtime) -> str:
    rows = await state.db.fetch_all("SELECT app, name FROM django_migrations", ())
    known = await asyncio.to_thread(_known_migrations)
    missing = known - {(app, name) for app, name in rows}
    return "ok" if not missing else f"{len(missing)} not applied: run manage.py migrate"


def _known_migrations() -> set[tuple[str, str]]:
    return set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations or ())


async def _broker() -> str:
    return await asyncio.to_thread(_ping_broker)


def _ping_broker() -> str:
    import redis
    from django.conf import settings

    with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=_PATIENCE_S) as client:
        client.ping()
    return "ok"


async def _engine(state: Runtime) -> str:
    profile = await state.profiles.get(DEFAULT_PROFILE)
    return "ok" if await profile.backend.ready() else "no engine answers"


async def _tokenizer(state: Runtime) -> str:
    profile = await state.profiles.get(DEFAULT_PROFILE)
    return "ok" if profile.renderer.vocab_size > 0 else "empty vocabulary"
