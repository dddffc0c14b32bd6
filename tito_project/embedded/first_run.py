"""What a database needs before the first request: that it answers, its tables, an operator's account."""

import secrets

import psycopg
import redis
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from django.db.migrations.executor import MigrationExecutor

from tito_project.embedded.errors import ServiceError

ADMIN_NAME = "admin"
_CONNECT_S = 10


def check_given_services() -> None:
    """Raises ServiceError if DATABASE_URL or REDIS_URL is set and nothing answers there."""
    if not settings.EMBEDDED_POSTGRES:
        try:
            psycopg.connect(settings.DATABASE_URL, connect_timeout=_CONNECT_S).close()
        except psycopg.Error as error:
            raise ServiceError(f"DATABASE_URL: {str(error).strip()}") from error
    if not settings.EMBEDDED_VALKEY:
        client = redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=_CONNECT_S)
        try:
            client.ping()
        except redis.RedisError as error:
            raise ServiceError(f"REDIS_URL: {error}") from error
        finally:
            client.close()


def migrate() -> None:
    """Brings the tables up to date; where they are, that is all it finds out."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        raise ServiceError(f"the migrations failed: {error}") from error


def create_admin() -> str | None:
    """Makes the first superuser and returns the password; None if there is one already."""
    users = get_user_model()
    try:
        if users.objects.filter(is_superuser=True).exists():
            return None
        password = secrets.token_urlsafe(12)
        users.objects.create_superuser(ADMIN_NAME, password=password)
        return password
    finally:
        _release_connections()


def _release_connections() -> None:
    """`up` itself needs the database no longer."""
    for each in connections.all(initialized_only=True):
        each.close()
        each.close_pool()  # type: ignore[attr-defined]
