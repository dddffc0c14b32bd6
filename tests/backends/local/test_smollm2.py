"""The model on board, asked through `up`'s own folder. On request only (`pytest -m smollm2`): it needs the
wheel, a gigabyte of memory and about a minute."""

import pytest

from sessions_app.backends.local.smollm2 import model_folder
from sessions_app.rendering.factory import load_renderer
from tests.backends.local.test_local_backend import local
from tests.backends.requests import make_request
from tests.client import Client, reply_of, user
from tests.harness import running_server

pytestmark = [pytest.mark.smollm2, pytest.mark.slow]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("smollm2")
    made = model_folder(home)
    assert model_folder(home) == made
    return str(made)


async def test_it_answers_a_question_through_our_template(folder, tmp_path):
    parsers = {"tool_parser": "qwen3", "reasoning_parser": "think"}
    renderer = load_renderer("template", model=folder, chat_template=None, kwargs={}, **parsers)
    prompt = renderer.render([{"role": "user", "content": "What is the capital of France?"}], None)
    async with local(tmp_path, folder, renderer.vocab_size) as backend:
        body = {"messages": [], "max_tokens": 30, "temperature": 0}
        done = await backend.generate(make_request(prompt.tolist(), body=body))
    assert "Paris" in renderer.parse(done.ids, None).message["content"]
    assert done.finish_reason == "stop"
    assert int(done.ids[-1]) in renderer.stop_token_ids


@pytest.mark.django_db
def test_a_conversation_with_tools_through_the_whole_server(folder, tmp_path):
    """A call is data, whatever the model makes of it; what was served is fed again as it was."""
    settings = {"TITO_HOME": str(tmp_path), "TITO_BACKEND": "local", "TITO_MODEL": folder}
    parameters = {"type": "object", "properties": {"expression": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "calculator", "parameters": parameters}}]
    with running_server(settings) as url:
        client = Client(url)
        session = client.create(on_truncated="close")
        asked = {"tools": tools, "temperature": 0, "max_tokens": 40, "timeout": 300}
        messages = [user("Use the calculator: 17 * 23")]
        messages += [reply_of(client.chat(session, messages, **asked)), user("And 2 + 2?")]
        assert client.chat(session, messages, **asked).status == 200
        records = client.get(session)["records"]
        tokens = client.tokens(session)
    first, second = (record["request"]["input_ids"] for record in records)
    assert second[: len(first)] == first
    assert tokens[: len(second)] == second
