"""Bodies that nobody would write: whatever comes, the answer has a code, and what was refused
changed nothing. Valid bodies are bent at a random place, at any depth; raw bytes come too.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sessions_app.models import Record
from tests.client import Answer, Client
from tests.fakes.engine import FakeEngine
from tests.integration.test_cases import toy_server

TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
VALID: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        ],
        "tools": [TOOL],
        "tool_choice": "auto",
        "temperature": 0.5,
        "max_tokens": 7,
        "stop": ["x"],
        "chat_template_kwargs": {"a": True},
        "stream": False,
    },
    "/v1/messages": {
        "model": "m",
        "max_tokens": 7,
        "system": [{"type": "text", "text": "s"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hello"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
        ],
        "tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
    },
    "/v1/responses": {
        "model": "m",
        "instructions": "s",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "hello"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "max_output_tokens": 7,
    },
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=12),
    st.sampled_from(["\ud800", "\x00", "<|im_start|>", "<|im_end|>", "{", "$tito", "9" * 5000, "", [], {}]),
    st.recursive(
        st.none() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=6,
    ),
    st.integers(1, 400).map(lambda depth: json.loads("[" * depth + "]" * depth)),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON value, the whole first."""
    yield path
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(inner, (*path, key))


@dataclass(frozen=True)
class Bent:
    """A protocol's path and a body that was valid once."""

    path: str
    body: bytes


@st.composite
def bent(draw: st.DrawFn) -> Bent:
    path = draw(st.sampled_from(sorted(VALID)))
    body: Any = copy.deepcopy(VALID[path])
    for _ in range(draw(st.integers(0, 3))):
        where = draw(st.sampled_from(list(places(body))))
        value, how = draw(ODD), draw(st.sampled_from(["replace", "remove", "repeat"]))
        body = changed(body, where, value, how)
    return Bent(path, json.dumps(body).encode())


def changed(body: Any, where: tuple[Any, ...], value: Any, how: str) -> Any:
    if not where:
        return value if how == "replace" else body
    holder = body
    for key in where[:-1]:
        holder = holder[key]
    if how == "replace":
        holder[where[-1]] = value
    elif how == "remove":
        del holder[where[-1]]
    elif isinstance(holder, list):
        holder.insert(where[-1], holder[where[-1]])
    else:
        holder[f"{where[-1]}_"] = holder[where[-1]]
    return body


@pytest.fixture(scope="module")
def served(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[Client, FakeEngine]]:
    folder = tmp_path_factory.mktemp("fuzz")
    with django_db_blocker.unblock(), toy_server(folder, TITO_MAX_BODY_MB="1") as pair:
        yield pair


QUIET = settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)


def holds(client: Client, session: str, before: Any, answer: Answer) -> None:
    """A clear answer, and a tree that only an accepted request changed."""
    assert answer.status != 500, answer.body
    if answer.status == 200:
        return
    assert 400 <= answer.status < 600
    assert answer.code, answer.body
    assert "error" in answer.json
    assert client.get(session) == before


@pytest.mark.parametrize("policy", ["tree", "linear", "rollback"])
def test_every_bent_body_has_a_clear_answer(served, policy: str) -> None:
    client, _ = served
    session = client.create(history_policy=policy)

    @QUIET
    @given(bent())
    def send(sent: Bent) -> None:
        before = client.get(session)
        holds(client, session, before, client.call("POST", f"/sessions/{session}{sent.path}", sent.body))

    send()
    assert client.call("GET", "/health").status == 200
    ends = set(Record.objects.filter(session_id=session).values_list("state", flat=True))
    assert ends <= {"committed", "confirmed", "refused", "upstream_error", "late", "replayed"}
    assert {"committed", "refused"} <= ends | {"confirmed"}, "neither only good nor only bad ones"


def test_bytes_that_are_no_json_are_refused_and_change_nothing(served) -> None:
    client, engine = served
    session, seen = client.create(), len(engine.requests)

    @QUIET
    @given(st.binary(max_size=200), st.sampled_from(sorted(VALID)))
    def send(body: bytes, path: str) -> None:
        before = client.get(session)
        answer = client.call("POST", f"/sessions/{session}{path}", body)
        assert answer.status == 400
        holds(client, session, before, answer)

    send()
    assert len(engine.requests) == seen
