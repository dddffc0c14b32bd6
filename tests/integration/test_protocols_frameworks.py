"""Agent frameworks that nobody adapted: base URL and key are all they are told.

An optional group: what is not installed is skipped (requirements-frameworks.txt).
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Bern"}'}}
FIRST, SECOND = [104, 105, 106], [107, 108]


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, FakeEngine]]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url, engine


class Rollout:
    """One agent's session, whose engine calls a tool and then answers."""

    def __init__(self, url: str, engine: FakeEngine, **options: Any) -> None:
        self.engine = engine
        self.url = f"{url}/sessions/{httpx.post(f'{url}/sessions', json=options).json()['session_id']}"
        self.openai = f"{self.url}/v1"
        message = {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [CALL]}
        engine.script(
            Reply(ids=FIRST, message=message, finish="tool_calls"), Reply(ids=SECOND, text="It is sunny.")
        )

    def check(self, said: str) -> None:
        """The agent got its answer, and the second prompt goes on from what was served."""
        assert said == "It is sunny."
        before, after = (body["input_ids"] for body in self.engine.bodies[-2:])
        assert after[: len(before) + len(FIRST)] == [*before, *FIRST]
        assert len(httpx.get(self.url).json()["metadata"]["tree"]["leaves"]) == 1


@pytest.mark.parametrize("responses", [False, True])
def test_openai_agents(served: tuple[str, FakeEngine], responses: bool) -> None:
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(True)
    rollout = Rollout(*served, harness="openai-agents")

    @agents.function_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    client = openai.AsyncOpenAI(base_url=rollout.openai, api_key="none")
    kind = agents.OpenAIResponsesModel if responses else agents.OpenAIChatCompletionsModel
    agent = agents.Agent(
        name="a", instructions="Help.", tools=[weather], model=kind(model="m", openai_client=client)
    )
    rollout.check(asyncio.run(agents.Runner.run(agent, "weather?")).final_output)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_pydantic_ai(served: tuple[str, FakeEngine], protocol: str) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    rollout = Rollout(*served, harness="pydantic-ai")
    models = pytest.importorskip(f"pydantic_ai.models.{protocol}")
    providers = pytest.importorskip(f"pydantic_ai.providers.{protocol}")
    if protocol == "openai":
        provider = providers.OpenAIProvider(base_url=rollout.openai, api_key="none")
        model = models.OpenAIChatModel("m", provider=provider)
    else:
        client = anthropic.AsyncAnthropic(base_url=rollout.url, api_key="none")
        model = models.AnthropicModel("m", provider=providers.AnthropicProvider(anthropic_client=client))
    agent = pydantic_ai.Agent(model, instructions="Help.")

    @agent.tool_plain
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    rollout.check(agent.run_sync("weather?").output)


def test_langgraph(served: tuple[str, FakeEngine]) -> None:
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    langchain_openai = pytest.importorskip("langchain_openai")
    rollout = Rollout(*served, harness="langgraph")

    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    model = langchain_openai.ChatOpenAI(model="m", base_url=rollout.openai, api_key="none", max_retries=0)
    agent = prebuilt.create_react_agent(model, [weather], prompt="Help.")
    result = agent.invoke({"messages": [("user", "weather?")]})
    rollout.check(result["messages"][-1].content)
