"""OTLP bodies as a whole: encodings, compression, limits, routing, and the answers to them."""

import gzip
import json

import pytest
from google.rpc.status_pb2 import Status
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceResponse,
)

from sessions_app.errors import BadRequest, BodyTooLarge, InvalidJson, UnsupportedMediaType
from tests.traces.test_bad_input import JSON
from tests.traces.test_otlp import (
    PROTOBUF,
    attribute,
    from_json,
    json_body,
    json_span,
    proto_request,
    proto_span,
)
from trainer_export.traces.otlp import (
    Encoding,
    Rejection,
    Route,
    answered,
    decode_traces,
    encoding_of,
    logs_response,
    route_of,
    route_of_headers,
    status_body,
    traces_response,
)


@pytest.mark.parametrize("content_type", [PROTOBUF, "application/json"])
def test_an_empty_body_is_an_empty_batch(content_type):
    batch = decode_traces(b"", content_type)
    assert (batch.spans, batch.rejected) == ([], [])


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"resourceSpans": 5}'])
def test_unreadable_json(body):
    with pytest.raises(BadRequest):
        decode_traces(body, "application/json")
    assert issubclass(InvalidJson, BadRequest)


def test_unreadable_protobuf():
    body = proto_request(proto_span()).SerializeToString()
    with pytest.raises(BadRequest, match=r"^Unable to parse OTLP traces payload: "):
        decode_traces(body[:-3], PROTOBUF)


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/grpc"])
def test_other_content_types(content_type):
    with pytest.raises(UnsupportedMediaType):
        decode_traces(b"", content_type)


def test_gzip_in_one_or_more_members():
    body = json_body(json_span())
    packed = gzip.compress(body[:20]) + gzip.compress(body[20:])
    assert len(decode_traces(packed, "Application/JSON", "gzip").spans) == 1


def test_a_bomb_is_refused_before_it_unfolds():
    bomb = gzip.compress(b"\0" * 50_000_000)
    with pytest.raises(BodyTooLarge):
        decode_traces(bomb, PROTOBUF, "gzip", max_bytes=1_000_000)
    with pytest.raises(BodyTooLarge):
        decode_traces(b"\0" * 1001, PROTOBUF, "", max_bytes=1000)


def test_the_limit_itself_is_allowed():
    body = json_body(json_span())
    packed = gzip.compress(body)
    assert len(decode_traces(packed, "application/json", "gzip", max_bytes=len(body)).spans) == 1
    with pytest.raises(BodyTooLarge):
        decode_traces(packed, "application/json", "gzip", max_bytes=len(body) - 1)


@pytest.mark.parametrize(
    "body", [b"no gzip", gzip.compress(b"x" * 1000)[:-4], gzip.compress(b"{}") + b"tail"]
)
def test_bad_gzip(body):
    with pytest.raises(BadRequest):
        decode_traces(body, "application/json", "gzip")


def test_other_codings_are_refused():
    with pytest.raises(UnsupportedMediaType):
        decode_traces(b"", PROTOBUF, "br")


def test_answers():
    rejected = [Rejection("span_id is all zeros")] * 2 + [Rejection("unknown rollout")]
    response = ExportTraceServiceResponse.FromString(traces_response(Encoding.PROTOBUF, rejected))
    assert response.partial_success.rejected_spans == 3
    assert response.partial_success.error_message == "2 x span_id is all zeros; 1 x unknown rollout"
    assert traces_response(Encoding.PROTOBUF, []) == b""
    assert traces_response(Encoding.JSON, []) == b"{}"
    assert json.loads(traces_response(Encoding.JSON, rejected))["partialSuccess"]["rejectedSpans"] == "3"
    assert json.loads(logs_response(Encoding.JSON, rejected))["partialSuccess"]["rejectedLogRecords"] == "3"


@pytest.mark.parametrize("message", ["", "bad", "long " * 100, "f\u00fcr"])
def test_status_bodies(message):
    assert Status.FromString(status_body(Encoding.PROTOBUF, 400, message)) == Status(code=3, message=message)
    assert json.loads(status_body(Encoding.JSON, 503, message)) == {"code": 14, "message": message}


def test_encoding_of_the_answer():
    assert encoding_of("application/json;charset=utf-8") is Encoding.JSON
    assert encoding_of(" application/X-Protobuf ") is Encoding.PROTOBUF


def routed(resource, attributes, request=Route()):  # noqa: B008
    return route_of(from_json(json_span(attributes=attributes), resource=resource).spans[0], request)


def test_routing_by_span_then_resource_then_request():
    by_resource = [
        attribute("agentlightning.rollout_id", stringValue="ro-1"),
        attribute("tito.attempt_id", stringValue="at-1"),
        attribute("agentlightning.span_sequence_id", intValue="3"),
    ]
    by_span = [
        attribute("tito.rollout_id", stringValue="ro-2"),
        attribute("tito.sequence_id", stringValue="-1"),
    ]
    request = route_of_headers({"x-rollout-id": "ro-3", "x-session-id": " se-3 ", "other": "x"})
    assert routed(by_resource, by_span, request) == Route("ro-2", "at-1", "se-3", 3)
    assert not routed([], []).is_known


@settings(max_examples=150, deadline=None)
@given(JSON)
def test_any_json_body_is_a_batch_or_a_bad_request(body):
    try:
        decode_traces(json.dumps(body).encode(), "application/json")
    except BadRequest:
        pass


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_a_bad_request(body):
    for content_type in (PROTOBUF, "application/json"):
        try:
            decode_traces(body, content_type)
        except BadRequest:
            pass


def test_many_small_members_are_refused_before_they_take_time():
    with pytest.raises(BadRequest, match="1000 members"):
        decode_traces(gzip.compress(b"") * 1001, "application/json", "gzip")
    assert decode_traces(gzip.compress(b"") * 1000, "application/json", "gzip").spans == []


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [("gzip", True), ("deflate, GZIP;q=0.5", True), ("*", True), ("x;q=1, *;q=0.1", True), ("", False),
     ("identity", False), ("gzip;q=0", False), ("gzip;q=0, *", False), ("gzip;q=?", False)],
)  # fmt: skip
def test_larger_answers_are_gzipped_for_who_takes_it(accepted, zipped):
    body = b"many reasons " * 100
    sent, is_zipped = answered(body, accepted)
    assert is_zipped is zipped
    assert (gzip.decompress(sent) if zipped else sent) == body
    assert answered(b"{}", accepted) == (b"{}", False)
