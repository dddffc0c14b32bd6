"""The stock exporter of the OpenTelemetry SDK against our decoding, over HTTP."""

import threading

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode

from tests.fakes.collector import Receiver
from trainer_export.traces.otlp import Route, route_of


@pytest.fixture
def receiver():
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("compression", "coding"), [(Compression.NoCompression, ""), (Compression.Gzip, "gzip")]
)
def test_spans_arrive_as_they_were_recorded(receiver, compression, coding):
    provider = TracerProvider(resource=Resource.create({"agentlightning.rollout_id": "ro-1"}))
    exporter = OTLPSpanExporter(endpoint=receiver.url, compression=compression)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("tests", "1.0")
    with tracer.start_as_current_span("agent") as outer, tracer.start_as_current_span("chat m") as inner:
        inner.set_attribute("response_token_ids", [4, 5])
        inner.add_event("token", {"n": 1})
        inner.set_status(Status(StatusCode.ERROR, "cut"))
    provider.shutdown()

    assert set(receiver.encodings) == {coding}
    chat, agent = receiver.spans
    assert agent.parent_id is None
    assert chat.parent_id == agent.span_id == f"{outer.get_span_context().span_id:016x}"
    assert (chat.start_ns, chat.end_ns) == (inner.start_time, inner.end_time)
    assert chat.attributes == {"response_token_ids": [4, 5]}
    assert (chat.status_code, chat.status_description, chat.events[0].name) == ("ERROR", "cut", "token")
    assert route_of(chat, Route()).rollout_id == "ro-1"
