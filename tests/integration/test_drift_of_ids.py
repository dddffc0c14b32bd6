"""What GET tells of drift where the engine is given ids only: its body does not have the tools that were
rendered."""

from typing import Any

import pytest

from tests.client import reply_of, user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server

TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "object"}}}
]


@pytest.mark.django_db
@pytest.mark.parametrize("backend", ["sglang", "sglang-generate", "vllm", "vllm-completions"])
def test_the_tools_of_a_request_are_part_of_its_render(tmp_path, backend: str) -> None:
    with toy_server(tmp_path, TITO_BACKEND=backend) as (client, engine):
        session = client.create()
        engine.script(Reply([100, 2], message=says("ab")), Reply([100, 2], message=says("ab")))
        history = [user("hello")]
        history += [reply_of(client.chat(session, history, tools=TOOLS)), user("ok")]
        client.chat(session, history, tools=TOOLS)
        assert client.get(session)["metadata"]["tito_session_mismatch"] == []
