"""OTLP over HTTP: what is stored, where, once, and what a sender is told."""

import gzip
import random
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from sessions_app.models import Session
from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import (
    JSON,
    PROTOBUF,
    batch,
    new_trace,
    send,
    settle,
    span,
    stored,
    waiting,
)
from trainer_export.models import Trace


@pytest.fixture(scope="module")
def client(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    with shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield Client(url)


class TestRouting:
    def test_by_resource_attributes_a_session_is_created_once(self, client: Client) -> None:
        trace, rollout = new_trace(), uuid.uuid4().hex
        names = {"agentlightning__rollout_id": rollout, "agentlightning__attempt_id": "at-1"}
        assert send(client, batch(span(1, trace), span(2, trace), **names)).json == {}
        assert send(client, batch(span(3, trace), **names)).json == {}
        session = Session.objects.get(rollout_id=rollout)
        assert session.attempt_id == "at-1"
        assert [row.session_id for row in stored(trace)] == [session.id] * 3

    def test_span_attributes_come_before_the_resource(self, client: Client) -> None:
        trace, rollout, other = new_trace(), uuid.uuid4().hex, uuid.uuid4().hex
        own = span(1, trace, attributes={"tito.rollout_id": other, "tito.attempt_id": "x"})
        send(client, batch(own, span(2, trace), tito__rollout_id=rollout, tito__attempt_id="y"))
        assert {row.span_id[-1]: row.session.rollout_id for row in stored(trace)} == {
            "1": other,
            "2": rollout,
        }

    @pytest.mark.parametrize("path", ["/v1/traces", "/v1/traces/"])
    def test_by_headers(self, client: Client, path: str) -> None:
        trace, rollout = new_trace(), uuid.uuid4().hex
        send(client, batch(span(1, trace)), path, {"x-rollout-id": rollout, "x-attempt-id": "7"})
        assert [row.session.attempt_id for row in stored(trace)] == ["7"]
        assert stored(trace)[0].session.rollout_id == rollout

    @pytest.mark.parametrize("slash", ["", "/"])
    def test_by_url(self, client: Client, slash: str) -> None:
        trace, rollout = new_trace(), uuid.uuid4().hex
        answer = send(client, batch(span(1, trace)), f"/rollout/{rollout}/attempt/2/v1/traces{slash}")
        assert answer.status == 200
        assert stored(trace)[0].session.rollout_id == rollout
        session = client.create()
        send(client, batch(span(2, trace)), f"/sessions/{session}/v1/traces{slash}")
        assert stored(trace)[-1].session_id.hex == session

    def test_a_rollout_without_an_attempt_goes_to_its_newest_session(self, client: Client) -> None:
        trace, rollout = new_trace(), uuid.uuid4().hex
        session = client.create(rollout_id=rollout, attempt_id="9")
        send(client, batch(span(1, trace), tito__rollout_id=rollout))
        assert stored(trace)[0].session_id.hex == session

    def test_a_deleted_session_still_takes_late_spans(self, client: Client) -> None:
        trace, rollout = new_trace(), uuid.uuid4().hex
        session = client.create(rollout_id=rollout, attempt_id="1")
        assert client.call("DELETE", f"/sessions/{session}").status == 204
        send(client, batch(span(1, trace), tito__rollout_id=rollout, tito__attempt_id="1"))
        send(client, batch(span(2, trace), tito__session_id=session))
        assert [row.session_id.hex for row in stored(trace)] == [session] * 2
        assert Session.objects.filter(rollout_id=rollout).count() == 1

    def test_what_does_not_exist_is_rejected_and_the_rest_kept(self, client: Client) -> None:
        trace, session = new_trace(), client.create()
        good = span(1, trace, attributes={"tito.session_id": session})
        bad = span(2, trace, attributes={"tito.session_id": "0" * 32})
        told = send(client, batch(good, bad)).json["partialSuccess"]
        assert told["rejectedSpans"] == "1"
        assert "does not exist" in told["errorMessage"]
        assert [row.span_id[-1] for row in stored(trace)] == ["1"]

    def test_a_url_that_names_nothing_is_an_error_of_the_whole_request(self, client: Client) -> None:
        answer = send(client, batch(span(1)), f"/sessions/{'0' * 32}/v1/traces")
        assert (answer.status, answer.code) == (404, "session_not_found")
        assert answer.json["code"] == 5


class TestByResponse:
    """Spans that name nothing: endpoint only, the response id leads to the session."""

    @pytest.fixture(autouse=True)
    def ids(self, engine: FakeEngine) -> None:
        """An engine's ids are its own; those of the fake ones begin anew with each."""
        engine.script(*(Reply(ids=[104, 105], identity=f"chatcmpl-{uuid.uuid4().hex}") for _ in range(2)))

    def chat(self, client: Client) -> tuple[str, str]:
        session = client.create()
        reply = client.chat(session, [user("hello")])
        return session, reply.json["id"]

    def call(self, span_id: int, trace: int, parent: int | None, response: str) -> dict[str, Any]:
        named = {"gen_ai.operation.name": "chat", "gen_ai.response.id": response}
        return span(span_id, trace, parent, "chat m", attributes=named)

    def test_a_trace_follows_its_calls(self, client: Client) -> None:
        trace, (session, response) = new_trace(), self.chat(client)
        assert send(client, batch(span(3, trace, 2), self.call(4, trace, 2, response))).json == {}
        assert [row.span_id[-1] for row in stored(trace)] == ["4"]
        send(client, batch(span(2, trace, 1)))
        send(client, batch(span(1, trace)))
        settle(trace)
        assert {row.span_id[-1] for row in stored(trace)} == {"1", "2", "3", "4"}
        assert {row.session_id.hex for row in stored(trace)} == {session}
        assert waiting(trace) == []

    @pytest.mark.parametrize("seed", range(6))
    def test_two_sessions_in_one_trace_are_kept_apart(self, client: Client, seed: int) -> None:
        trace, (first, one), (second, two) = new_trace(), self.chat(client), self.chat(client)
        spans = [
            span(1, trace),
            span(2, trace, 1, "agent one"),
            span(3, trace, 1, "agent two"),
            self.call(4, trace, 2, one),
            self.call(5, trace, 3, two),
            span(6, trace, 3, "tool"),
        ]
        random.Random(seed).shuffle(spans)
        for item in spans:
            send(client, batch(item))
        settle(trace)
        found = {int(row.span_id, 16): row.session_id.hex for row in stored(trace)}
        assert found == {2: first, 4: first, 3: second, 5: second, 6: second}
        assert waiting(trace) == [f"{1:016x}"]

    def test_a_reward_that_links_to_a_response_needs_no_trace(self, client: Client) -> None:
        trace, (session, response) = new_trace(), self.chat(client)
        reward = {
            "agentlightning.reward.0.name": "primary",
            "agentlightning.reward.0.value": 1.0,
            "agentlightning.link.0.key_match": "gen_ai.response.id",
            "agentlightning.link.0.value_match": response,
        }
        send(client, batch(span(1, trace, None, "agentlightning.annotation", attributes=reward)))
        assert stored(trace)[0].session_id.hex == session
        assert stored(trace)[0].is_reward

    def test_sent_again_after_it_was_placed_changes_nothing(self, client: Client) -> None:
        trace, (_, response) = new_trace(), self.chat(client)
        body = batch(span(1, trace), self.call(2, trace, 1, response))
        for _ in range(3):
            assert send(client, body).json == {}
            settle(trace)
        assert len(stored(trace)) == 2
        assert waiting(trace) == []


class TestOnce:
    def test_the_same_spans_again_in_any_order_are_stored_once(self, client: Client) -> None:
        trace, session = new_trace(), client.create()
        spans = [span(number, trace, number - 1 or None) for number in range(1, 9)]
        for seed in range(4):
            random.Random(seed).shuffle(spans)
            for item in [*spans, spans[0]]:
                send(client, batch(item, tito__session_id=session))
        rows = stored(trace)
        assert sorted(int(row.span_id, 16) for row in rows) == list(range(1, 9))
        assert sorted(row.sequence_id for row in rows) == list(range(1, 9))
        counted = Trace.objects.get(trace_id=f"{trace:032x}")
        assert (counted.spans, counted.name) == (8, "work")

    def test_a_span_twice_in_one_batch_is_one(self, client: Client) -> None:
        trace, session = new_trace(), client.create()
        twin = span(1, trace, name="second")
        send(client, batch(span(1, trace, name="first"), twin, tito__session_id=session))
        assert [row.name for row in stored(trace)] == ["first"]

    def test_given_sequence_ids_stand_and_move_the_counter_on(self, client: Client) -> None:
        trace, session = new_trace(), client.create()
        given = span(2, trace, attributes={"tito.sequence_id": 40})
        bad = span(3, trace, attributes={"tito.sequence_id": -4})
        send(client, batch(span(1, trace), given, bad, tito__session_id=session))
        send(client, batch(span(4, trace), tito__session_id=session))
        assert {int(r.span_id, 16): (r.sequence_id, r.sequence_given) for r in stored(trace)} == {
            1: (1, False),
            2: (40, True),
            3: (41, False),
            4: (42, False),
        }

    def test_concurrent_senders_get_distinct_numbers(self, client: Client) -> None:
        trace, session = new_trace(), client.create()
        bodies = [batch(span(number, trace), tito__session_id=session) for number in range(1, 25)]
        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(lambda body: send(client, body), bodies * 2))
        assert {answer.status for answer in answers} <= {200, 503}
        for body in bodies:
            assert send(client, body).status == 200
        assert sorted(row.sequence_id for row in stored(trace)) == list(range(1, 25))


class TestAnswers:
    def test_protobuf_is_answered_with_protobuf(self, client: Client) -> None:
        request = ExportTraceServiceRequest()
        one = request.resource_spans.add().scope_spans.add().spans.add()
        one.trace_id, one.span_id, one.name = b"\1" * 15, b"\2" * 8, "short id"
        answer = client.call(
            "POST", "/v1/traces", request.SerializeToString(), {"content-type": PROTOBUF + "; x=y"}
        )
        assert (answer.status, answer.headers["content-type"]) == (200, PROTOBUF)
        told = ExportTraceServiceResponse.FromString(answer.body).partial_success
        assert told.rejected_spans == 1
        assert "trace_id has 15 bytes" in told.error_message

    @pytest.mark.parametrize("kind", [PROTOBUF, JSON])
    def test_an_empty_request_is_a_success(self, client: Client, kind: str) -> None:
        answer = client.call("POST", "/v1/traces", b"", {"content-type": kind})
        assert (answer.status, answer.body) == (200, b"" if kind == PROTOBUF else b"{}")

    @pytest.mark.parametrize(
        ("body", "kind", "coding", "status"),
        [
            (b"\xff\xff\xff", PROTOBUF, "", 400),
            (b"{", JSON, "", 400),
            (b"[]", JSON, "", 400),
            (b"not gzip", PROTOBUF, "gzip", 400),
            (b"x", "text/plain", "", 415),
            (b"x", "", "", 415),
            (b"x", PROTOBUF, "br", 415),
            (b"\0" * (20 * 1024 * 1024 + 1), PROTOBUF, "", 413),
            (b"bomb", PROTOBUF, "gzip", 413),
            (b"\0" * (65 * 1024 * 1024), PROTOBUF, "", 413),
        ],
    )
    def test_what_cannot_be_read_is_told_in_a_status(
        self, client: Client, body: bytes, kind: str, coding: str, status: int
    ) -> None:
        body = gzip.compress(b"\0" * (21 * 1024 * 1024)) if body == b"bomb" else body
        headers = {"content-type": kind} | ({"content-encoding": coding} if coding else {})
        try:
            answer = client.call("POST", "/v1/traces", body, headers)
        except OSError:
            assert len(body) > 64 * 1024 * 1024  # refused before it was read
            return
        assert answer.status == status
        if kind == PROTOBUF:
            assert Status.FromString(answer.body).message
        else:
            assert answer.json["message"]

    def test_other_methods_are_not_allowed(self, client: Client) -> None:
        assert client.call("GET", "/v1/traces").status == 405

    def test_no_page_of_another_origin_may_send(self, client: Client) -> None:
        headers = {"origin": "http://evil.example", "content-type": PROTOBUF}
        answer = client.call("POST", "/v1/traces", b"", headers)
        assert answer.status == 403
        assert Status.FromString(answer.body).code == 7
