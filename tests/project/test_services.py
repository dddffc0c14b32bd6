"""The services the tests run on are the real ones."""

import pytest
import redis
from django.conf import settings
from django.db import connection


@pytest.mark.django_db
def test_the_database_is_postgres_and_the_role_is_no_superuser() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, rolsuper FROM pg_roles "
            "WHERE rolname = current_user"
        )
        version, superuser = cursor.fetchone()
    assert version >= 160000
    assert not superuser


def test_the_broker_answers() -> None:
    client = redis.Redis.from_url(settings.REDIS_URL)
    assert client.ping()
