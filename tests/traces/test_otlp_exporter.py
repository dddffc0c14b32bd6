"""The stock exporter of the OpenTelemetry SDK against our decoding, over HTTP."""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode

from trainer_export.traces.otlp import Encoding, Route, decode_traces, route_of, traces_response


class Receiver(HTTPServer):
    """Keeps what it decodes, answers what a receiver answers."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.spans = []
        self.encodings = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1/traces"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        coding = self.headers.get("Content-Encoding", "")
        batch = decode_traces(body, self.headers["Content-Type"], coding)
        self.server.spans += batch.spans
        self.server.encodings.append(coding)
        answer = traces_response(Encoding.PROTOBUF, batch.rejected)
        self.send_response(200)
        self.send_header("Content-Type", Encoding.PROTOBUF)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        """Silent."""


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
