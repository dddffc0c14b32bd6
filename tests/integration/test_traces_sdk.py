"""The stock exporter of the OpenTelemetry SDK against the whole server, with nothing set but the endpoint."""

import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from sessions_app.errors import NotReady
from sessions_app.models import Session
from tests.client import Client
from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import stored
from trainer_export.models import Span
from trainer_export.spans.service import SpansService


@pytest.fixture(scope="module")
def url(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url


def recorded(count: int, **resource: str) -> list[ReadableSpan]:
    """Spans of one trace as an SDK makes them, children first."""
    memory = InMemorySpanExporter()
    named = {key.replace("__", "."): value for key, value in resource.items()}
    provider = TracerProvider(resource=Resource.create(named))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("agent", "1.2")
    with tracer.start_as_current_span("agent run"):
        for number in range(count - 1):
            with tracer.start_as_current_span(f"chat {number}") as span:
                span.set_attribute("prompt_token_ids", [1, 2, number])
                span.add_event("token", {"n": number})
                if number == 1:
                    span.set_status(Status(StatusCode.ERROR, "cut"))
    return list(memory.get_finished_spans())


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_a_thousand_spans_in_any_order_and_twice(url: str, compression: Compression) -> None:
    rollout = uuid.uuid4().hex
    exporter = OTLPSpanExporter(f"{url}/rollout/{rollout}/attempt/1/v1/traces", compression=compression)
    spans = recorded(1000)
    batches = [spans[at : at + 128] for at in range(0, len(spans), 128)] * 2
    random.Random(3).shuffle(batches)
    for batch in batches:
        assert exporter.export(batch) is SpanExportResult.SUCCESS
    rows = Span.objects.filter(session__rollout_id=rollout)
    assert rows.count() == len(spans)
    assert sorted(rows.values_list("sequence_id", flat=True)) == list(range(1, 1001))
    failed = rows.get(status_code="ERROR")
    assert (failed.name, failed.status_description) == ("chat 1", "cut")
    context = spans[0].get_span_context()
    assert context is not None
    row = rows.get(span_id=f"{context.span_id:016x}")
    assert (row.start_ns, row.end_ns) == (spans[0].start_time, spans[0].end_time)
    assert '"prompt_token_ids":[1,2,0]' in row.attributes


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_the_json_exporter_too(url: str, monkeypatch: pytest.MonkeyPatch, compression: str) -> None:
    """An optional group: requirements-frameworks.txt."""
    exporters = pytest.importorskip("opentelemetry.exporter.otlp.json.http")
    rollout = uuid.uuid4().hex
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", compression)
    exporter = exporters.OTLPSpanExporter(f"{url}/rollout/{rollout}/attempt/1/v1/traces")
    spans = recorded(300)
    for batch in (spans[150:], spans[:150], spans):
        assert exporter.export(batch) is SpanExportResult.SUCCESS
    rows = Span.objects.filter(session__rollout_id=rollout)
    assert sorted(rows.values_list("sequence_id", flat=True)) == list(range(1, 301))
    for span in (spans[0], spans[-1]):
        context = span.get_span_context()
        assert context is not None
        row = rows.get(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")
        assert (row.name, row.start_ns, row.end_ns) == (span.name, span.start_time, span.end_time)
    assert rows.get(name="chat 1").status_code == "ERROR"
    assert '"prompt_token_ids":[1,2,7]' in rows.get(name="chat 7").attributes
    assert rows.filter(parent_id__isnull=True).count() == 1


def test_the_environment_alone_is_enough(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = uuid.uuid4().hex
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", f"tito.rollout_id={rollout},tito.attempt_id=3")
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource.create())
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    provider.add_span_processor(SimpleSpanProcessor(memory))
    with provider.get_tracer("t").start_as_current_span("root"):
        pass
    provider.shutdown()
    session = Session.objects.get(rollout_id=rollout, attempt_id="3")
    assert [span.name for span in session.spans.all()] == ["root"]


def test_told_to_come_again_the_exporter_loses_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    receive: Callable[..., Any] = SpansService.receive
    refusals = iter([NotReady("busy"), NotReady("busy")])

    async def busy(self: SpansService, *arguments: Any) -> Any:
        for refusal in refusals:
            raise refusal
        return await receive(self, *arguments)

    monkeypatch.setattr(SpansService, "receive", busy)
    spans = recorded(3)
    session = Client(url).create()
    assert OTLPSpanExporter(f"{url}/sessions/{session}/v1/traces").export(spans) is SpanExportResult.SUCCESS
    context = spans[0].get_span_context()
    assert context is not None
    assert len(stored(context.trace_id)) == 3
