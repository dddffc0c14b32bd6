"""Addresses in the spelling of each library."""

from pathlib import Path

import pytest
import redis

from tito_project.addresses import broker_url, embedded_database_url, embedded_redis_url, orm_database
from tito_project.embedded.account import server_account
from tito_project.embedded.places import Places

PLACES = Places(Path("/home dir/x"), server_account(), Path("/home dir/x/run"))


def test_the_embedded_socket_survives_blanks_in_paths() -> None:
    assert orm_database(embedded_database_url(PLACES), 4)["HOST"] == "/home dir/x/run"
    client = redis.Redis.from_url(embedded_redis_url(PLACES))
    assert client.connection_pool.connection_kwargs["path"] == "/home dir/x/run/valkey.sock"


@pytest.mark.parametrize("url", ["redis://h:1/2", "rediss://u:p@h/0"])
def test_network_addresses_stay_as_they_are(url: str) -> None:
    assert broker_url(url) == url


def test_options_in_the_database_address_are_kept() -> None:
    database = orm_database("postgresql://u@h/n?sslmode=require", 4)
    assert database["OPTIONS"]["sslmode"] == "require"
    assert database["OPTIONS"]["pool"]["max_size"] == 4
