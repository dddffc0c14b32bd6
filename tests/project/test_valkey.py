"""The embedded broker."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
from kombu import Connection

from tests.project.homes import temporary_home
from tito_project.addresses import broker_url, embedded_redis_url
from tito_project.embedded.child import Child
from tito_project.embedded.places import Places
from tito_project.embedded.valkey import EmbeddedValkey

pytestmark = pytest.mark.slow


@contextmanager
def running(places: Places) -> Iterator[Child]:
    """A broker that is stopped at the end."""
    child = EmbeddedValkey(places).start()
    try:
        yield child
    finally:
        child.stop()


def client_of(places: Places) -> redis.Redis:
    """As the application connects."""
    return redis.Redis.from_url(embedded_redis_url(places))


def test_messages_survive_kill_9(places: Places) -> None:
    with running(places) as child:
        client_of(places).rpush("queue", *range(100))
        os.kill(child.process.pid, signal.SIGKILL)
        child.process.wait()
    with running(places):
        assert client_of(places).llen("queue") == 100


def test_a_live_broker_of_a_dead_up_is_replaced(places: Places) -> None:
    orphan = EmbeddedValkey(places).start()
    client_of(places).set("key", "value")
    with running(places):
        assert orphan.process.wait(timeout=5) is not None
        assert client_of(places).get("key") == b"value"


def test_a_pid_file_of_another_program_harms_nobody(places: Places) -> None:
    with running(places):
        pass
    (EmbeddedValkey(places).data / "valkey.pid").write_text(f"{os.getpid()}\n")
    with running(places):
        assert client_of(places).ping()


def test_tasks_go_through_the_socket_whatever_the_path() -> None:
    with (
        temporary_home(below="my home") as places,
        running(places),
        Connection(broker_url(embedded_redis_url(places))) as connection,
    ):
        queue = connection.SimpleQueue("q")
        queue.put({"n": 1})
        message = queue.get(timeout=5)
        assert message.payload == {"n": 1}
        message.ack()
        queue.close()


def test_nothing_listens_on_the_network(places: Places) -> None:
    with running(places):
        assert client_of(places).config_get("port") == {"port": "0"}
