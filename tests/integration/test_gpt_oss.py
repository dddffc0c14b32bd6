"""gpt-oss through the whole server with an engine that returns ids only, where the machine has its tokenizer.

Ids that were served are fed again as they were, and calls are read, though the family spells them otherwise.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessions_app.rendering.package.renderer import PackageRenderer
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server
from tests.rendering.test_gpt_oss import CALL, TOOLS, real_tokenizer

pytestmark = pytest.mark.django_db


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Client, FakeEngine, PackageRenderer]]:
    tokenizer = real_tokenizer()
    if tokenizer is None:
        pytest.skip(
            "REAL_TOKENIZERS holds no tokenizer of gpt-oss: the family is NOT tested through the server"
        )
    with FakeEngine() as engine:
        settings = {
            "TITO_HOME": str(tmp_path),
            "TITO_MODEL": tokenizer.model,
            "TITO_RENDERER": "renderers:gpt-oss",
            "TITO_BACKEND": "sglang-generate",
            "TITO_BACKEND_URL": engine.url,
        }
        with running_server(settings) as url:
            yield Client(url), engine, PackageRenderer(tokenizer, "gpt-oss", {})


def test_turns_with_reasoning_and_a_call_stay_one_path(
    served: tuple[Client, FakeEngine, PackageRenderer],
) -> None:
    client, engine, renderer = served
    session = client.create()
    history: list[Any] = [user("what is here?")]
    said = [
        CALL,
        "done<|end|><|start|>assistant<|channel|>final<|message|>Two files.<|return|>",
        "x<|return|>",
    ]
    replies = []
    for text, new in zip(said, ([], "tool", [user("and now?")]), strict=True):
        if new == "tool":
            call_id = replies[-1]["tool_calls"][0]["id"]
            new = [{"role": "tool", "tool_call_id": call_id, "name": "ls", "content": "a b"}]
        history = [*history, *(replies[-1:] if replies else []), *new]
        engine.script(Reply(renderer.encode(text).tolist(), finish="stop"))
        replies.append(reply_of(client.chat(session, history, tools=TOOLS)))
    assert [reply.get("reasoning_content") for reply in replies] == ["why", "done", "x"]
    assert replies[0]["tool_calls"][0]["function"] == {"name": "ls", "arguments": "{}"}
    assert [reply["content"] or "" for reply in replies] == ["", "Two files.", ""]
    fed = [body["input_ids"] for body in engine.bodies]
    for earlier, later, text in zip(fed, fed[1:], said, strict=False):
        before = [*earlier, *renderer.encode(text).tolist()]
        assert later[: len(before)] == before
    metadata = client.get(session)["metadata"]
    assert len(metadata["tree"]["leaves"]) == 1
    (spelled_otherwise,) = metadata["tito_session_mismatch"]
    assert "[<|constrain|>]" in spelled_otherwise["actual_text"]
    assert "[<|constrain|>]" not in spelled_otherwise["expected_text"]
