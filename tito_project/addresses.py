"""Database and broker addresses, as given or of the embedded services, in the spelling each library wants."""

from typing import Any
from urllib.parse import quote, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

from tito_project.embedded.places import POSTGRES_PORT, Places

_POSTGRES_SCHEMES = frozenset({"postgres", "postgresql"})
_REDIS_SCHEMES = frozenset({"redis", "rediss", "unix", "redis+socket"})


def embedded_database_url(places: Places) -> str:
    """The database of the embedded server, through its unix socket."""
    return f"postgresql://tito@{quote(str(places.sockets), safe='')}:{POSTGRES_PORT}/tito"


def embedded_redis_url(places: Places) -> str:
    """The embedded broker in redis-py's spelling."""
    return f"unix://{quote(str(places.valkey_socket))}?db=0"


def orm_database(url: str, pool_size: int) -> dict[str, Any]:
    """Django's DATABASES entry: pooled, because a new connection costs more than the queries of a page."""
    if urlsplit(url).scheme not in _POSTGRES_SCHEMES:
        raise ImproperlyConfigured("DATABASE_URL must be a postgresql:// address")
    try:
        parsed: dict[str, Any] = dict(dj_database_url.parse(url, conn_max_age=0, conn_health_checks=True))
    except (ValueError, dj_database_url.ParseError) as error:
        raise ImproperlyConfigured(f"DATABASE_URL cannot be read: {type(error).__name__}") from None
    pool = {"min_size": 0, "max_size": pool_size, "timeout": 10, "max_idle": 60}
    parsed["OPTIONS"] = {**parsed.get("OPTIONS", {}), "pool": pool}
    return parsed


def broker_url(redis_url: str) -> str:
    """The same broker in Celery's spelling, which names unix sockets differently."""
    parts = urlsplit(redis_url)
    if parts.scheme not in _REDIS_SCHEMES:
        raise ImproperlyConfigured("REDIS_URL must be a redis://, rediss:// or unix:// address")
    if parts.scheme != "unix":
        return redis_url
    return f"redis+socket://{parts.path}?{parts.query.replace('db=', 'virtual_host=')}"
