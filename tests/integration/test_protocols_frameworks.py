"""Agent frameworks that nobody adapted: base URL and key are all they are told.

An optional group: what is not installed is skipped (requirements-frameworks.txt).
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any, ClassVar

import anthropic
import httpx
import openai
import pytest

from tests.fakes.engine import FakeEngine, Reply
from tests.integration.servers import shared_server, toy_environment


def call(name: str, arguments: dict[str, str], number: int = 1) -> dict[str, Any]:
    """A call as an engine may spell it: no framework would print these arguments so."""
    function = {"name": name, "arguments": "{ " + json.dumps(arguments)[1:-1] + " }"}
    return {"id": f"call_{number}", "type": "function", "function": function}


WEATHER = call("weather", {"city": "Zürich"})
FIRST, SECOND = [104, 105, 106], [107, 108]


def by_name_and_auto(harness: str) -> pytest.MarkDecorator:
    """The profile named, and found by the headers that the framework sends."""
    return pytest.mark.parametrize("harness", [harness, "auto"])


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[str, FakeEngine]]:
    with FakeEngine() as engine, shared_server(django_db_blocker, toy_environment(engine)) as url:
        yield url, engine


def reply(ids: list[int], said: dict[str, Any] | str) -> Reply:
    if isinstance(said, str):
        return Reply(ids=ids, text=said)
    message = {"role": "assistant", "content": "I look. ", "reasoning_content": "hm", "tool_calls": [said]}
    return Reply(ids=ids, message=message, finish="tool_calls")


class Rollout:
    """One agent's session, whose engine calls a tool and then answers."""

    def __init__(
        self,
        url: str,
        engine: FakeEngine,
        first: dict[str, Any] | str = WEATHER,
        answer: dict[str, Any] | str = "It is sunny.",
        **options: Any,
    ) -> None:
        """What the engine says in its two turns: a text, or the call that it makes."""
        self.engine = engine
        self.url = f"{url}/sessions/{httpx.post(f'{url}/sessions', json=options).json()['session_id']}"
        self.openai = f"{self.url}/v1"
        engine.script(reply(FIRST, first), reply(SECOND, answer))

    def check(self, said: str) -> None:
        """The agent got its answer, and the second prompt goes on from what was served."""
        assert said == "It is sunny."
        before, after = (body["input_ids"] for body in self.engine.bodies[-2:])
        assert after[: len(before) + len(FIRST)] == [*before, *FIRST]
        assert len(httpx.get(self.url).json()["metadata"]["tree"]["leaves"]) == 1


@by_name_and_auto("openai-agents")
@pytest.mark.parametrize("responses", [False, True])
def test_openai_agents(served: tuple[str, FakeEngine], responses: bool, harness: str) -> None:
    agents = pytest.importorskip("agents")
    agents.set_tracing_disabled(True)
    rollout = Rollout(*served, harness=harness)

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


@by_name_and_auto("pydantic-ai")
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_pydantic_ai(served: tuple[str, FakeEngine], protocol: str, harness: str) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai")
    rollout = Rollout(*served, harness=harness)
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


@by_name_and_auto("smolagents")
def test_smolagents_that_write_code(served: tuple[str, FakeEngine], harness: str) -> None:
    smolagents = pytest.importorskip("smolagents")
    code = "Thought: I add.\n<code>\nx = 1 + 1\nprint(x)\n</code>"
    last = 'Done.\n<code>\nfinal_answer("It is sunny.")\n</code>'
    rollout = Rollout(*served, first=code, answer=last, harness=harness)
    model = smolagents.OpenAIModel("m", api_base=rollout.openai, api_key="none")
    agent = smolagents.CodeAgent(tools=[], model=model, verbosity_level=0)
    rollout.check(agent.run("weather?"))


@by_name_and_auto("strands")
@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_strands(served: tuple[str, FakeEngine], protocol: str, harness: str) -> None:
    strands = pytest.importorskip("strands")
    models = pytest.importorskip(f"strands.models.{protocol}")
    rollout = Rollout(*served, harness=harness)

    @strands.tool
    def weather(city: str) -> str:
        """The weather of a city.

        Args:
            city: Its name.
        """
        return f"sunny in {city}"

    if protocol == "openai":
        arguments = {"base_url": rollout.openai, "api_key": "none"}
        model = models.OpenAIModel(client_args=arguments, model_id="m")
    else:
        arguments = {"base_url": rollout.url, "api_key": "none"}
        model = models.AnthropicModel(client_args=arguments, model_id="m", max_tokens=99)
    agent = strands.Agent(model=model, tools=[weather], system_prompt="Help.", callback_handler=None)
    rollout.check(str(agent("weather?")).strip())


@by_name_and_auto("smolagents")
def test_smolagents(served: tuple[str, FakeEngine], harness: str) -> None:
    smolagents = pytest.importorskip("smolagents")
    rollout = Rollout(*served, answer=call("final_answer", {"answer": "It is sunny."}, 2), harness=harness)

    class Weather(smolagents.Tool):  # type: ignore[name-defined, misc]
        name = "weather"
        description = "The weather of a city."
        inputs: ClassVar[Any] = {"city": {"type": "string", "description": "Its name."}}
        output_type = "string"

        def forward(self, city: str) -> str:
            return f"sunny in {city}"

    model = smolagents.OpenAIModel("m", api_base=rollout.openai, api_key="none")
    agent = smolagents.ToolCallingAgent(tools=[Weather()], model=model, verbosity_level=0)
    rollout.check(agent.run("weather?"))


@pytest.mark.parametrize("options", [{}, {"harness": "auto"}], ids=str)
def test_mini_swe_agent(
    served: tuple[str, FakeEngine], monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    monkeypatch.setenv("MSWEA_SILENT_STARTUP", "1")
    monkeypatch.setenv("MSWEA_COST_TRACKING", "ignore_errors")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "true")  # else it asks the network for prices
    agents = pytest.importorskip("minisweagent.agents.default")
    models = pytest.importorskip("minisweagent.models.litellm_model")
    environments = pytest.importorskip("minisweagent.environments.local")
    done = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo It is sunny."
    calls = call("bash", {"command": "echo hi"}), call("bash", {"command": done}, 2)
    rollout = Rollout(*served, *calls, **options)
    model = models.LitellmModel(
        model_name="openai/m",
        model_kwargs={"api_base": rollout.openai, "api_key": "none"},
        cost_tracking="ignore_errors",
    )
    agent = agents.DefaultAgent(
        model, environments.LocalEnvironment(), system_template="Help.", instance_template="{{task}}"
    )
    rollout.check(agent.run("weather?")["submission"].strip())


@by_name_and_auto("langgraph")
def test_langgraph(served: tuple[str, FakeEngine], harness: str) -> None:
    prebuilt = pytest.importorskip("langgraph.prebuilt")
    langchain_openai = pytest.importorskip("langchain_openai")
    rollout = Rollout(*served, harness=harness)

    def weather(city: str) -> str:
        """The weather of a city."""
        return f"sunny in {city}"

    model = langchain_openai.ChatOpenAI(model="m", base_url=rollout.openai, api_key="none", max_retries=0)
    agent = prebuilt.create_react_agent(model, [weather], prompt="Help.")
    result = agent.invoke({"messages": [("user", "weather?")]})
    rollout.check(result["messages"][-1].content)
