"""Static files: whole, cached, in ranges, and without a warning under ASGI."""

import asyncio
import warnings

import pytest
from django.test import AsyncClient, Client

FILE = "/static/tito/operator.css"


@pytest.fixture
def whole(client: Client) -> bytes:
    """The file."""
    return client.get(FILE).content


def test_a_file_is_served_whole_with_its_type(client: Client, whole: bytes) -> None:
    reply = client.get(FILE)
    assert reply["content-type"].startswith("text/css")
    assert int(reply["content-length"]) == len(whole) > 1000
    assert not reply.streaming


def test_a_range_and_an_unchanged_file_cost_no_more_than_they_must(client: Client, whole: bytes) -> None:
    part = client.get(FILE, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole[10:20])
    again = client.get(FILE, headers={"if-modified-since": client.get(FILE)["last-modified"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.head(FILE).content == b""


def test_asgi_has_nothing_to_warn_of(whole: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reply = asyncio.run(AsyncClient().get(FILE))
    assert reply.content == whole
