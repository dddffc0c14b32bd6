"""OTLP over HTTP: odd spans, and rewards as log records."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from google.rpc.status_pb2 import Status

from tests.client import Client
from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import PROTOBUF, batch, new_trace, send, span, stored


@pytest.fixture(scope="module")
def client(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[Client]:
    with shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield Client(url)


class TestBadSpans:
    """The rest of the batch is always kept."""

    @pytest.mark.parametrize(
        "bad",
        [
            {"traceId": "ab"},
            {"traceId": "0" * 32},
            {"spanId": "zz" * 8},
            {"spanId": 7},
            {"parentSpanId": "abc"},
            {"startTimeUnixNano": "-1"},
            {"endTimeUnixNano": "soon"},
            {"attributes": "none"},
            {"attributes": [{"value": {}}]},
            {"attributes": [{"key": "a", "value": {"intValue": "x"}}]},
            {"name": 5},
        ],
    )
    def test_a_bad_span_costs_only_itself(self, client: Client, bad: dict[str, Any]) -> None:
        trace, session = new_trace(), client.create()
        body = batch(span(1, trace), span(2, trace) | bad, span(3, trace), tito__session_id=session)
        answer = send(client, body, zipped=True)
        assert (answer.status, answer.json["partialSuccess"]["rejectedSpans"]) == (200, "1")
        assert [row.span_id[-1] for row in stored(trace)] == ["1", "3"]

    @pytest.mark.parametrize(
        "odd",
        [
            {"endTimeUnixNano": "1", "startTimeUnixNano": "5"},
            {"startTimeUnixNano": str(2**64 - 1), "endTimeUnixNano": str(2**63)},
            {"startTimeUnixNano": "0", "endTimeUnixNano": None},
            {"kind": 2**31, "flags": 2**32 - 1, "droppedAttributesCount": 2**63},
            {"name": "nul \x00 and \ud800"},
            {"attributes": [{"key": "k\x00", "value": {"stringValue": "\x00\udfff"}}]},
            {"attributes": [{"key": "x", "value": {"doubleValue": "NaN"}}]},
            {"attributes": [{"key": "gen_ai.response.id", "value": {"stringValue": "r" * 5_000_000}}]},
            {"attributes": [{"key": f"a{n}", "value": {"intValue": n}} for n in range(10_000)]},
            {"attributes": [{"key": "agentlightning.reward", "value": {"stringValue": "?"}}]},
            {"attributes": [{"key": "gen_ai.prompt", "value": {"stringValue": "[]"}}]},
            {"attributes": [{"key": "tito.sequence_id", "value": {"stringValue": "9" * 20}}]},
            {"parentSpanId": f"{2:016x}"},
        ],
    )
    def test_an_odd_span_is_stored(self, client: Client, odd: dict[str, Any]) -> None:
        trace, session = new_trace(), client.create()
        body = batch(span(1, trace), span(2, trace) | odd, tito__session_id=session)
        assert send(client, body).json == {}
        assert len(stored(trace)) == 2

    def test_a_long_list_of_reasons_is_gzipped_where_that_is_accepted(self, client: Client) -> None:
        bad = [{"traceId": "12"}, {"spanId": "0" * 16}, {"spanId": "xyz"}, {"name": 5}]
        nowhere = span(9, attributes={"tito.session_id": "0" * 32})
        body = batch(*(span(n + 1) | odd for n, odd in enumerate(bad)), nowhere)
        plain = send(client, body)
        zipped = send(client, body, headers={"accept-encoding": "gzip, deflate"})
        assert plain.json["partialSuccess"]["rejectedSpans"] == "5"
        assert "content-encoding" not in plain.headers
        assert zipped.headers["content-encoding"] == "gzip"
        assert int(zipped.headers["content-length"]) == len(zipped.body) < len(plain.body)
        assert gzip.decompress(zipped.body) == plain.body

    def test_names_that_cannot_be_a_rollouts_are_rejected(self, client: Client) -> None:
        trace = new_trace()
        answer = send(client, batch(span(1, trace), tito__rollout_id="r" * 501))
        assert answer.json["partialSuccess"]["rejectedSpans"] == "1"
        assert stored(trace) == []


class TestRewardLogs:
    def test_an_evaluation_becomes_a_reward_span_once(self, client: Client) -> None:
        session, trace = client.create(), new_trace()
        record = {
            "eventName": "gen_ai.evaluation.result",
            "timeUnixNano": "5000000000",
            "traceId": f"{trace:032x}",
            "spanId": f"{4:016x}",
            "attributes": [{"key": "gen_ai.evaluation.score.value", "value": {"doubleValue": 0.5}}],
        }
        body = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {"body": {"stringValue": "x"}}]}]}]}
        for path in (f"/sessions/{session}/v1/logs", f"/sessions/{session}/v1/logs/"):
            assert send(client, body, path).json == {}
        assert [(row.is_reward, row.parent_id) for row in stored(trace)] == [(True, f"{4:016x}")]

    def test_bad_logs_are_told_in_a_status(self, client: Client) -> None:
        answer = client.call("POST", "/v1/logs", b"\xff\xff", {"content-type": PROTOBUF})
        assert (answer.status, Status.FromString(answer.body).code) == (400, 3)
