"""OTLP bodies in both encodings -> spans, and the answers to them."""

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sessions_app.errors import BadRequest
from tests.traces.test_bad_input import JSON
from trainer_export.traces.better.conversion import Rules, convert
from trainer_export.traces.otlp import (
    Rejection,
    decode_logs,
    decode_traces,
)

PROTOBUF = "application/x-protobuf"
TRACE = "ABCDEF" + "0" * 24 + "12"
SPAN = "00000000000000Ff"


def json_span(**changes):
    return {"traceId": TRACE, "spanId": SPAN, "name": "call"} | changes


def json_body(*spans, resource=None):
    group = {"scopeSpans": [{"scope": {"name": "lib", "version": "1"}, "spans": list(spans)}]}
    if resource is not None:
        group["resource"] = {"attributes": resource}
    return json.dumps({"resourceSpans": [group], "unknownField": 1}).encode()


def from_json(*spans, **options):
    return decode_traces(json_body(*spans, **options), "application/json; charset=utf-8")


def attribute(key, **value):
    return {"key": key, "value": value}


def proto_request(*spans):
    request = ExportTraceServiceRequest()
    scoped = request.resource_spans.add().scope_spans.add()
    scoped.spans.extend(spans)
    return request


def proto_span(**changes):
    return Span(**({"trace_id": b"\x01" * 16, "span_id": b"\x02" * 8, "name": "call"} | changes))


def test_json_ids_are_hex_of_any_case():
    span = from_json(json_span(parentSpanId="00000000000000AA")).spans[0]
    assert (span.trace_id, span.span_id, span.parent_id) == (
        TRACE.lower(),
        "00000000000000ff",
        "00000000000000aa",
    )


@pytest.mark.parametrize("parent", [None, "", "0" * 16])
def test_roots_are_written_in_many_ways(parent):
    assert from_json(json_span(parentSpanId=parent)).spans[0].parent_id is None
    assert from_json(json_span()).spans[0].parent_id is None
    raw = bytes.fromhex(parent or "")
    body = proto_request(proto_span(parent_span_id=raw)).SerializeToString()
    assert decode_traces(body, PROTOBUF).spans[0].parent_id is None


def test_json_values():
    values = [
        attribute("s", stringValue="x"),
        attribute("b", boolValue=False),
        attribute("i", intValue="-9007199254740993"),
        attribute("j", intValue=7),
        attribute("d", doubleValue=0.5),
        attribute("n", doubleValue="NaN"),
        attribute(
            "a",
            arrayValue={
                "values": [{"intValue": 1}, {"kvlistValue": {"values": [attribute("k", intValue=2)]}}]
            },
        ),
        attribute("y", bytesValue=base64.b64encode(b"\x01\xff").decode()),
        {"key": "null"},
        attribute("s", stringValue="later wins"),
    ]
    assert from_json(json_span(attributes=values)).spans[0].attributes == {
        "s": "later wins",
        "b": False,
        "i": -9007199254740993,
        "j": 7,
        "d": 0.5,
        "n": "NaN",
        "a": [1, {"k": 2}],
        "y": "01ff",
        "null": None,
    }


def test_protobuf_values_are_the_same():
    def pair(key, **value):
        return KeyValue(key=key, value=AnyValue(**value))

    span = proto_span()
    span.attributes.extend(
        [pair("s", string_value="x"), pair("i", int_value=-3), pair("y", bytes_value=b"\x01\xff")]
    )
    span.attributes.append(pair("n", double_value=float("inf")))
    span.attributes.append(KeyValue(key="null"))
    nested = KeyValue(key="a")
    nested.value.array_value.values.add().kvlist_value.values.append(pair("k", bool_value=True))
    span.attributes.append(nested)
    found = decode_traces(proto_request(span).SerializeToString(), PROTOBUF).spans[0]
    assert found.attributes == {
        "s": "x",
        "i": -3,
        "y": "01ff",
        "n": "Infinity",
        "null": None,
        "a": [{"k": True}],
    }


def test_times_stay_nanoseconds_and_zero_is_unknown():
    span = from_json(json_span(startTimeUnixNano="1760000000123456789", endTimeUnixNano=0)).spans[0]
    assert (span.start_ns, span.end_ns) == (1760000000123456789, None)
    assert span.to_span("r", "a", 3).start_time == pytest.approx(1760000000.1234567)


def test_everything_else_is_kept():
    span = from_json(
        json_span(
            kind="SPAN_KIND_CLIENT",
            status={"code": 2, "message": "no"},
            startTimeUnixNano=9,
            endTimeUnixNano="5",
            droppedAttributesCount=1,
            traceState="k=v",
            flags=257,
            events=[{"name": "e", "timeUnixNano": "5", "attributes": [attribute("x", intValue=1)]}],
            links=[{"traceId": TRACE, "spanId": SPAN}],
        ),
        resource=[attribute("service.name", stringValue="agent")],
    ).spans[0]
    assert (span.kind, span.status_code, span.status_description, span.dropped_attributes) == (
        3,
        "ERROR",
        "no",
        1,
    )
    assert (span.trace_state, span.flags, span.ends_before_start) == ("k=v", 257, True)
    assert (span.scope.name, span.resource.attributes) == ("lib", {"service.name": "agent"})
    value = span.to_span("ro", "at", 4)
    assert value.events == ({"name": "e", "timestamp": 5e-9, "attributes": {"x": 1}},)
    assert value.links[0]["context"]["span_id"] == SPAN.lower()
    assert (value.rollout_id, value.attempt_id, value.sequence_id) == ("ro", "at", 4)


BAD_SPANS = [
    (json_span(traceId="abcd"), "trace_id has 2 bytes instead of 16"),
    (json_span(traceId="0" * 32), "trace_id is all zeros"),
    (json_span(spanId="zz"), "span_id is no hex text"),
    (json_span(spanId="00 00 00 00 00 00 00 01"), "span_id is no hex text"),
    (json_span(spanId=None), "span_id has 0 bytes instead of 8"),
    (json_span(parentSpanId="01"), "parent_span_id has 1 bytes instead of 8"),
    (json_span(startTimeUnixNano="soon"), "startTimeUnixNano is no whole number of 64 bits"),
    (json_span(startTimeUnixNano=-1), "startTimeUnixNano is no whole number of 64 bits"),
    (json_span(endTimeUnixNano=2**64), "endTimeUnixNano is no whole number of 64 bits"),
    (json_span(attributes={"a": 1}), "attributes is no list of objects"),
    (json_span(attributes=[{"value": {}}]), "attributes has an entry without a key"),
    (json_span(attributes=[attribute("a", boolValue="x")]), "boolValue is of the wrong type"),
    (json_span(attributes=[attribute("a", intValue=1.5)]), "intValue is no whole number of 64 bits"),
    (json_span(attributes=[attribute("a", doubleValue=[])]), "doubleValue is no number"),
    (json_span(attributes=[attribute("a", bytesValue="\u00e9")]), "bytesValue is no base64"),
    (json_span(name=5), "name is no text"),
    ("no object", "a span is no object"),
]


@pytest.mark.parametrize(("bad", "reason"), BAD_SPANS, ids=[reason for _, reason in BAD_SPANS])
def test_a_bad_span_costs_only_itself(bad, reason):
    batch = from_json(bad, json_span())
    assert len(batch.spans) == 1
    assert [rejection.reason for rejection in batch.rejected] == [reason]


def test_a_bad_protobuf_span_costs_only_itself():
    body = proto_request(proto_span(trace_id=b"\x01"), proto_span()).SerializeToString()
    batch = decode_traces(body, PROTOBUF)
    assert len(batch.spans) == 1
    assert batch.rejected == [Rejection("trace_id has 1 bytes instead of 16", "02" * 8)]


def test_values_nested_too_deep_reject_the_span():
    value = {"intValue": 1}
    for _ in range(300):
        value = {"arrayValue": {"values": [value]}}
    batch = from_json(json_span(attributes=[{"key": "a", "value": value}]), json_span())
    assert [rejection.reason for rejection in batch.rejected] == [
        "attributes are nested more than 64 levels deep"
    ]


def test_protobuf_nested_too_deep_is_a_bad_request():
    deep = b""
    for _ in range(300):
        array = b"\x0a" + varint(len(deep)) + deep
        deep = b"\x2a" + varint(len(array)) + array
    layers = b"\x0a\x01a\x12" + varint(len(deep)) + deep
    for tag in (b"\x4a", b"\x12", b"\x12", b"\x0a"):
        layers = tag + varint(len(layers)) + layers
    with pytest.raises(BadRequest):
        decode_traces(layers, PROTOBUF)


def varint(number):
    return bytes([number]) if number < 128 else bytes([number % 128 + 128]) + varint(number // 128)


def test_text_that_a_database_refuses_is_cleaned():
    value = {"key": "k\x00", "value": {"stringValue": "\udfff"}}
    batch = from_json(json_span(name="a\x00b\ud800c", attributes=[value]))
    assert batch.spans[0].name == "a\ufffdb\ufffdc"
    assert batch.spans[0].attributes == {"k\ufffd": "\ufffd"}


def test_reward_log_records_become_spans_and_others_are_ignored():
    score = attribute("gen_ai.evaluation.score.value", doubleValue=0.5)
    answered = attribute("gen_ai.response.id", stringValue="chatcmpl-c")
    record = {"eventName": "gen_ai.evaluation.result", "timeUnixNano": "5", "attributes": [score, answered]}
    old = {
        "attributes": [attribute("event.name", stringValue="gen_ai.evaluation.result"), score],
        "spanId": SPAN,
    }
    bad = {"eventName": "gen_ai.evaluation.result", "traceId": "ab"}
    logs = {
        "resourceLogs": [{"scopeLogs": [{"logRecords": [record, old, bad, {"body": {"stringValue": "x"}}]}]}]
    }
    batch = decode_logs(json.dumps(logs).encode(), "application/json")
    assert [span.parent_id for span in batch.spans] == [None, SPAN.lower()]
    assert len(batch.rejected) == 1
    assert decode_logs(json.dumps(logs).encode(), "application/json").spans == batch.spans
    assert all(len(span.span_id) == 16 and len(span.trace_id) == 32 for span in batch.spans)


def test_protobuf_logs():
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.event_name = "gen_ai.evaluation.result"
    record.span_id = b"\x02" * 8
    assert decode_logs(request.SerializeToString(), PROTOBUF).spans[0].parent_id == "02" * 8
    with pytest.raises(BadRequest):
        decode_logs(b"\xff", PROTOBUF)


def test_received_spans_convert():
    call = [
        attribute("gen_ai.operation.name", stringValue="chat"),
        attribute("gen_ai.response.id", stringValue="chatcmpl-c"),
        attribute("prompt_token_ids", arrayValue={"values": [{"intValue": "1"}]}),
        attribute("response_token_ids", arrayValue={"values": [{"intValue": "2"}]}),
    ]
    span = from_json(json_span(attributes=call)).spans[0].to_span("ro", "at", 1)
    source = {field: getattr(span, field) for field in ("span_id", "parent_id", "name", "attributes")}
    assert convert([source], Rules()).triplets[0].prompt["token_ids"] == [1]


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["traceId", "spanId", "attributes", "status", "events", "links", "kind"]), JSON
    )
)
def test_any_json_span_is_a_span_or_a_rejection(changes):
    batch = from_json(json_span(**changes))
    assert len(batch.spans) + len(batch.rejected) == 1
