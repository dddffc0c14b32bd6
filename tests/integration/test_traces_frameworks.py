"""An instrumented agent framework: its own spans, the stock exporter, exact ids in the end.

An optional group: what is not installed is skipped (requirements-frameworks.txt).
"""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from sessions_app.models import Node, Session
from tests.client import Client
from tests.exports.exporting import export, rows
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment
from tests.integration.spans_support import make_ready
from trainer_export.shapes import layout_of

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, FakeEngine]]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url, engine


@pytest.mark.parametrize("content", [True, False], ids=["with content", "without content"])
def test_pydantic_ai(served: tuple[str, FakeEngine], tmp_path: Path, content: bool) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    models = pytest.importorskip("pydantic_ai.models.openai")
    providers = pytest.importorskip("pydantic_ai.providers.openai")
    instrumented = pytest.importorskip("pydantic_ai.models.instrumented")
    capabilities = pytest.importorskip("pydantic_ai.capabilities.instrumentation")
    url, engine = served
    rollout = uuid.uuid4().hex
    base = f"{url}/rollout/{rollout}/attempt/1/v1"
    calling = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    ids = [f"chatcmpl-{uuid.uuid4().hex}" for _ in range(2)]
    engine.script(
        Reply(ids=[104, 105], message=calling, finish="tool_calls", identity=ids[0]),
        Reply(ids=[107, 108], text="It is sunny.", identity=ids[1]),
    )
    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"{base}/traces", compression=Compression.Gzip)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    settings = instrumented.InstrumentationSettings(tracer_provider=provider, include_content=content)
    model = models.OpenAIChatModel("m", provider=providers.OpenAIProvider(base_url=base, api_key="none"))
    tracing = capabilities.Instrumentation(settings=settings)
    agent = pydantic_ai.Agent(model, name="forecaster", instructions="Help.", capabilities=[tracing])

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    assert agent.run_sync("weather?").output == "It is sunny."
    provider.shutdown()

    session = Session.objects.get(rollout_id=rollout)
    make_ready(session.id)
    assert list(Node.objects.filter(session=session).values_list("agent", flat=True)) == ["forecaster"] * 2
    wanted = json.dumps({"mode": "better", "agent_match": "^forecaster$"})
    report = export(tmp_path, "--shape", "triplets", "--traces", wanted, sessions=[session.id.hex])
    first, second = rows(tmp_path, layout_of("triplets"))
    assert [first["response_id"], second["response_id"]] == ids
    assert [*second["prompt_ids"], *second["response_ids"]] == Client(url).tokens(session.id.hex)
    assert list(first["response_ids"]) == [104, 105]
    assert first["agent_name"] == "forecaster"
    assert ("weather?" in json.dumps(first["prompt"])) == content
    assert report["traces"]["spans"]["call"] == 2
    assert report["traces"]["spans"]["agent"] == 1
