"""Keep-alives, late errors and limits, each in its protocol's shape."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

from tests.fakes.engine import FakeEngine, Reply, Status
from tests.integration.servers import shared_server, toy_environment

MESSAGES = [{"role": "user", "content": "hello"}]
PATHS = {
    "chat": ("v1/chat/completions", {"messages": MESSAGES}),
    "messages": ("v1/messages", {"messages": MESSAGES, "max_tokens": 9}),
    "responses": ("v1/responses", {"input": "hello"}),
}


@pytest.fixture(scope="module")
def served(django_db_setup: None, django_db_blocker: Any) -> Iterator[tuple[httpx.Client, FakeEngine]]:
    with FakeEngine() as engine:
        environment = toy_environment(engine) | {"TITO_KEEPALIVE_S": "0.05", "TITO_ENGINE_TIMEOUT": "30"}
        with shared_server(django_db_blocker, environment) as url, httpx.Client(base_url=url) as client:
            yield client, engine


def new_session(client: httpx.Client, **options: Any) -> str:
    return f"/sessions/{client.post('/sessions', json=options).json()['session_id']}"


def slow_stream(served: tuple[httpx.Client, FakeEngine], protocol: str, item: Any) -> tuple[int, str]:
    """A stream whose engine answers after a few keep-alives."""
    client, engine = served
    gate = threading.Event()
    path, body = PATHS[protocol]
    engine.script(item(gate))
    threading.Timer(0.3, gate.set).start()
    response = client.post(f"{new_session(client)}/{path}", json={**body, "stream": True})
    return response.status_code, response.text


def good(gate: threading.Event) -> Reply:
    return Reply(ids=[104], text="ok", gate=gate)


def bad(gate: threading.Event) -> Reply:
    return Reply(ids=[104], text="ok", gate=gate, completion_tokens=7)


@pytest.mark.parametrize(
    ("protocol", "keep_alive", "end"),
    [
        ("chat", ": keep-alive\n\n", "data: [DONE]\n\n"),
        ("messages", 'event: ping\ndata: {"type":"ping"}\n\n', '"type":"message_stop"}\n\n'),
        ("responses", ": keep-alive\n\n", "\n\n"),
    ],
)
def test_a_stream_is_kept_alive_in_its_protocol(
    served: tuple[httpx.Client, FakeEngine], protocol: str, keep_alive: str, end: str
) -> None:
    status, text = slow_stream(served, protocol, good)
    assert status == 200
    assert text.startswith(keep_alive * 2)
    assert text.count(keep_alive) >= 3
    assert text.endswith(end)


def test_an_error_after_the_first_byte_is_the_protocols_own_event(
    served: tuple[httpx.Client, FakeEngine],
) -> None:
    _, chat = slow_stream(served, "chat", bad)
    data, done = chat.strip().split("\n\n")[-2:]
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == "upstream_token_count_mismatch"
    assert done == "data: [DONE]"
    _, messages = slow_stream(served, "messages", bad)
    kind, data = messages.strip().split("\n")[-2:]
    assert kind == "event: error"
    assert json.loads(data.removeprefix("data: "))["error"]["type"] == "api_error"
    _, responses = slow_stream(served, "responses", bad)
    kind, data = responses.strip().split("\n")[-2:]
    assert kind == "event: error"
    assert json.loads(data.removeprefix("data: "))["code"] == "upstream_token_count_mismatch"


def test_the_sdks_see_late_errors(served: tuple[httpx.Client, FakeEngine]) -> None:
    client, engine = served
    base = f"{client.base_url}{new_session(client)}"
    chats = openai.OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
    messages = anthropic.Anthropic(base_url=base, api_key="none", max_retries=0)
    said: list[Any] = MESSAGES
    streams: list[Callable[[], Iterable[Any]]] = [
        lambda: chats.chat.completions.create(model="m", messages=said, stream=True),
        lambda: chats.responses.create(model="m", input="hi", stream=True),
        lambda: messages.messages.create(model="m", max_tokens=9, messages=said, stream=True),
    ]
    for stream in streams:
        gate = threading.Event()
        engine.script(bad(gate))
        threading.Timer(0.3, gate.set).start()
        with pytest.raises((openai.APIError, anthropic.APIError), match="completion_tokens"):
            list(stream())


@pytest.mark.parametrize("protocol", PATHS)
def test_an_early_error_keeps_its_status(served: tuple[httpx.Client, FakeEngine], protocol: str) -> None:
    client, _ = served
    path, body = PATHS[protocol]
    response = client.post(f"{new_session(client)}/{path}", json={**body, "stream": True, "n": 2})
    assert (response.status_code, response.headers["X-Tito-Error-Code"]) == (400, "n_not_supported")


STANDARD = (
    "This model's maximum context length is 5 tokens. However, your prompt contains {} input tokens, which "
    "leaves no room for output tokens. Please reduce the length of the messages."
)


@pytest.mark.parametrize("protocol", PATHS)
def test_a_prompt_without_room_has_the_standard_text(
    served: tuple[httpx.Client, FakeEngine], protocol: str
) -> None:
    client, _ = served
    session = new_session(client, max_context_tokens=5, history_policy="linear")
    path, body = PATHS[protocol]
    response = client.post(f"{session}/{path}", json=body)
    assert (response.status_code, response.headers["X-Should-Retry"]) == (400, "false")
    count = client.post(f"{session}/v1/messages/count_tokens", json=PATHS["messages"][1]).json()
    message = STANDARD.format(count["input_tokens"])
    if protocol == "messages":
        wanted: Any = {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": message},
        }
    else:
        wanted = {
            "error": {
                "message": message,
                "type": "invalid_request_error",
                "param": None,
                "code": "context_length_exceeded",
            }
        }
    assert response.json() == wanted


@pytest.mark.parametrize("protocol", PATHS)
def test_too_many_turns_are_told_as_a_limit(served: tuple[httpx.Client, FakeEngine], protocol: str) -> None:
    client, engine = served
    session = new_session(client, max_turns=1, history_policy="linear")
    path, body = PATHS[protocol]
    engine.script(Reply(ids=[104]))
    assert client.post(f"{session}/{path}", json=body).status_code == 200
    response = client.post(f"{session}/{path}", json=body)
    assert (response.status_code, response.json()["error"]["type"]) == (429, "rate_limit_error")
    assert response.headers["X-Should-Retry"] == "false"


def test_a_busy_engine_is_waited_for_beside_the_reference_path(
    served: tuple[httpx.Client, FakeEngine],
) -> None:
    client, engine = served
    busy = Status(503, {"Retry-After": "0"}, b"{}")
    path, body = PATHS["chat"]
    engine.script(busy)
    assert client.post(f"{new_session(client)}/{path}", json=body).status_code == 503
    engine.script(busy, Reply(ids=[104]))
    assert client.post(f"{new_session(client, history_policy='linear')}/{path}", json=body).status_code == 200


def test_an_engines_overflow_is_mapped_and_its_own_words_recorded(
    served: tuple[httpx.Client, FakeEngine],
) -> None:
    client, engine = served
    said = b'{"error": {"message": "maximum context length of 4096 tokens, you asked for more"}}'
    session = new_session(client, history_policy="linear")
    path, body = PATHS["chat"]
    engine.script(Status(400, {}, said))
    response = client.post(f"{session}/{path}", json=body)
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert "maximum context length is 4096 tokens" in response.json()["error"]["message"]
    from sessions_app.models import Record

    record = Record.objects.get(session_id=session.rpartition("/")[2])
    assert (record.state, record.error_code) == ("upstream_error", "upstream_status")
    assert record.response == said.decode()


@pytest.mark.parametrize("protocol", PATHS)
def test_a_client_that_leaves_its_stream_loses_no_turn(
    served: tuple[httpx.Client, FakeEngine], protocol: str
) -> None:
    client, engine = served
    gate, session = threading.Event(), new_session(client)
    path, body = PATHS[protocol]
    engine.script(good(gate))
    with client.stream("POST", f"{session}/{path}", json={**body, "stream": True}) as response:
        assert next(response.iter_bytes())
    gate.set()
    deadline = time.monotonic() + 20
    while not client.get(session).json()["records"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert client.get(session).json()["records"][0]["response"]["choices"][0]["message"]["content"] == "ok"
