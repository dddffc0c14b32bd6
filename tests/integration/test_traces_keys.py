"""OTLP over HTTP with authentication: whose key sends for what."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client import Client
from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import batch, new_trace, send, span, stored

ADMIN = "the-admin-token"


@pytest.fixture(scope="class")
def closed(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    environment = toy_environment(engine) | {"TITO_AUTH": "token", "TITO_ADMIN_TOKEN": ADMIN}
    with shared_server(django_db_blocker, environment) as url:
        yield Client(url)


class TestKeys:
    def session(self, closed: Client, **options: Any) -> tuple[str, dict[str, str]]:
        answer = closed.call("POST", "/sessions", options, {"authorization": f"Bearer {ADMIN}"})
        key = answer.headers["x-tito-session-key"]
        return answer.json["session_id"], {"authorization": f"Bearer {key}"}

    def test_no_key_or_a_wrong_one_opens_nothing(self, closed: Client) -> None:
        for headers in ({}, {"authorization": "Bearer nonsense"}):
            answer = send(closed, batch(span(1)), headers=headers)
            assert (answer.status, answer.json["code"]) == (401, 16)

    def test_a_session_key_alone_says_where(self, closed: Client) -> None:
        trace, (session, key) = new_trace(), self.session(closed)
        assert send(closed, batch(span(1, trace)), headers=key).json == {}
        assert stored(trace)[0].session_id.hex == session

    def test_a_session_key_opens_its_rollout_and_no_other(self, closed: Client) -> None:
        trace, rollout, other = new_trace(), uuid.uuid4().hex, uuid.uuid4().hex
        _, key = self.session(closed, rollout_id=rollout, attempt_id="1")
        foreign, _ = self.session(closed, rollout_id=other, attempt_id="1")
        spans = [
            span(1, trace, attributes={"tito.rollout_id": rollout, "tito.attempt_id": "2"}),
            span(2, trace, attributes={"tito.rollout_id": other, "tito.attempt_id": "1"}),
            span(3, trace, attributes={"tito.session_id": foreign}),
            span(4, trace, attributes={"tito.rollout_id": "new"}),
        ]
        assert send(closed, batch(*spans), headers=key).json["partialSuccess"]["rejectedSpans"] == "3"
        assert [(r.span_id[-1], r.session.attempt_id) for r in stored(trace)] == [("1", "2")]
        for path in (f"/rollout/{other}/attempt/1/v1/traces", f"/sessions/{foreign}/v1/traces"):
            assert send(closed, batch(span(5, trace)), path, key).status in (401, 404)
        assert len(stored(trace)) == 1

    def test_the_admin_token_sends_for_all(self, closed: Client) -> None:
        trace, rollout = new_trace(), uuid.uuid4().hex
        headers = {"authorization": f"Bearer {ADMIN}"}
        send(closed, batch(span(1, trace), tito__rollout_id=rollout), headers=headers)
        assert stored(trace)[0].session.attempt_id == "0"
