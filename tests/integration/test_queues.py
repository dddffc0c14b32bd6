"""What waits is told by /metrics: tasks, exports, connections; what is unknown is left out."""

import re

import pytest
from django.conf import settings
from redis import Redis

from tests.client import Client
from tests.integration.test_cases import toy_server

pytestmark = pytest.mark.django_db


def told(client: Client) -> dict[str, float]:
    text = client.call("GET", "/metrics").body.decode()
    found = re.findall(r'^tito_queue_length\{queue="(\w+)"\} (\S+)$', text, re.MULTILINE)
    return {queue: float(value) for queue, value in found}


def test_tasks_that_no_worker_took_are_counted(tmp_path) -> None:
    broker = Redis.from_url(settings.REDIS_URL)
    with toy_server(tmp_path, TITO_METRICS_OPEN="on") as (client, _):
        before = told(client)
        assert set(before) == {"tasks", "tasks_taken", "exports", "replays", "connections"}
        broker.rpush("celery", "{}", "{}")
        broker.hset("unacked", "of-this-test", "{}")
        try:
            after = told(client)
        finally:
            broker.ltrim("celery", 0, -3)
            broker.hdel("unacked", "of-this-test")
        assert after["tasks"] - before["tasks"] == 2
        assert after["tasks_taken"] - before["tasks_taken"] == 1
    broker.close()


def test_a_broker_that_is_away_has_no_length_and_the_metrics_answer(tmp_path, monkeypatch) -> None:
    with toy_server(tmp_path, TITO_METRICS_OPEN="on") as (client, _):
        monkeypatch.setattr(settings, "REDIS_URL", "redis://127.0.0.1:9/0")
        assert set(told(client)) == {"exports", "replays", "connections"}
