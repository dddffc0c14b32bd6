"""What cannot be served is refused in the contract's words, changes nothing, and leaves a record."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from sessions_app.models import HistoryEvent, Record
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server


@pytest.fixture(scope="module")
def toy(tmp_path_factory, django_db_setup, django_db_blocker) -> Iterator[tuple[Client, FakeEngine]]:
    with (
        django_db_blocker.unblock(),
        toy_server(tmp_path_factory.mktemp("toy"), TITO_MAX_BODY_MB="1") as pair,
    ):
        yield pair


def started(client: Client, engine: FakeEngine, **options: Any) -> tuple[str, list[dict[str, Any]]]:
    """A session with one turn, and the history that continues it."""
    session = client.create(**options)
    engine.script(Reply([100, 2], message=says("ab")))
    return session, [user("hello"), reply_of(client.chat(session, [user("hello")]))]


def test_a_body_that_is_no_json_is_told_in_the_decoders_words(toy: tuple[Client, FakeEngine]) -> None:
    client, _ = toy
    answer = client.call("POST", f"/sessions/{client.create()}/v1/chat/completions", b"{nope")
    words = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert (answer.status, answer.json) == (400, {"error": f"invalid JSON body: {words}"})


BAD_BODIES: list[tuple[bytes, str]] = [
    (b"{nope", "invalid_json"),
    (b"\xff\xfe", "invalid_json"),
    (b"[" * 100_000, "invalid_json"),
    (b"[]", "invalid_body"),
    (b'"text"', "invalid_body"),
    (b"null", "invalid_body"),
    (b"7", "invalid_body"),
    (b"", "invalid_messages"),
    (b"{}", "invalid_messages"),
    (b'{"messages": null}', "invalid_messages"),
    (b'{"messages": "hi"}', "invalid_messages"),
    (b'{"messages": {}}', "invalid_messages"),
    (b'{"messages": []}', "invalid_messages"),
    (b'{"messages": [1]}', "invalid_messages"),
    (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "invalid_messages"),
    (b'{"messages": [{"role": "user", "content": "x"}], "n": 2}', "n_not_supported"),
    (b'{"messages": [{"role": "user", "content": "x"}], "input_ids": [1]}', "input_ids_not_allowed"),
    (b'{"messages": [{"role": "user", "content": "x"}], "tools": "all"}', "invalid_tools"),
    (b'{"messages": [{"role": "user", "content": "x"}], "tools": [1]}', "invalid_tools"),
    (
        b'{"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": 3}',
        "invalid_template_kwargs",
    ),
]


@pytest.mark.parametrize(("body", "code"), BAD_BODIES)
def test_a_refused_body_leaves_the_session_unchanged_and_a_record(toy, body: bytes, code: str) -> None:
    client, engine = toy
    session, _ = started(client, engine)
    before = client.call("GET", f"/sessions/{session}").body
    calls = len(engine.requests)
    answer = client.call("POST", f"/sessions/{session}/v1/chat/completions", body)
    assert (answer.status, answer.code) == (400, code), answer.body
    assert list(answer.json) == ["error"]
    assert answer.headers["x-tito-retryable"] == "false"
    assert client.call("GET", f"/sessions/{session}").body == before
    assert len(engine.requests) == calls
    record = Record.objects.filter(session_id=session).latest("pk")
    assert (record.state, record.error_code, record.status_code) == ("refused", code, 400)


def test_an_unknown_session_is_told_before_anything_else(toy) -> None:
    client, _ = toy
    unknown = "0" * 32
    for body in (b"{nope", b'{"messages": []}'):
        answer = client.call("POST", f"/sessions/{unknown}/v1/chat/completions", body)
        assert (answer.status, answer.code) == (404, "session_not_found")
        assert answer.json == {"error": f"session not found: session_id={unknown}"}
    for method in ("GET", "DELETE"):
        assert client.call(method, f"/sessions/{unknown}").code == "session_not_found"
    assert client.call("GET", "/sessions/not-an-id").status == 404


def test_a_deleted_session_is_gone_for_every_process_cache(toy) -> None:
    client, engine = toy
    session, history = started(client, engine)
    assert client.call("DELETE", f"/sessions/{session}").status == 204
    assert client.chat(session, [*history, user("ok")]).status == 404
    assert client.call("POST", f"/sessions/{session}/v1/chat/completions", b"{nope").status == 404
    assert client.call("DELETE", f"/sessions/{session}").status == 404


def test_wrong_methods_and_unknown_paths(toy) -> None:
    client, engine = toy
    session, _ = started(client, engine)
    for method, path in (
        ("GET", "/sessions"),
        ("PUT", f"/sessions/{session}"),
        ("HEAD", f"/sessions/{session}"),
    ):
        answer = client.call(method, path)
        assert answer.status == 405
        assert "allow" in answer.headers
    assert client.call("PUT", f"/sessions/{session}").json == {"detail": "Method Not Allowed"}
    assert client.call("GET", f"/sessions/{session}/v1/chat/completions").code == "not_found"
    answer = client.call("GET", "/nowhere")
    assert (answer.status, answer.json) == (404, {"detail": "Not Found"})


def test_an_oversized_body_is_refused_unread(toy) -> None:
    client, engine = toy
    session, _ = started(client, engine)
    body = json.dumps({"messages": [user("x" * 1_100_000)]}).encode()
    answer = client.call("POST", f"/sessions/{session}/v1/chat/completions", body)
    assert (answer.status, answer.code) == (413, "body_too_large")


def test_the_direct_path_is_guarded(toy) -> None:
    client, engine = toy
    session, history = started(client, engine)
    path = f"/sessions/{session}/v1/chat/completions"
    body = {"messages": [*history, user("ok")]}
    for header, value, status, code in (
        ("host", "evil.example", 400, "invalid_host"),
        ("origin", "https://evil.example", 403, "forbidden_origin"),
        ("content-type", "text/plain", 415, "unsupported_media_type"),
    ):
        answer = client.call("POST", path, body, {header: value})
        assert (answer.status, answer.code) == (status, code)
    assert client.call("GET", f"/sessions/{session}").headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("500", 500, "upstream_status"),
        ("cut", 502, "upstream_unreachable"),
        ("malformed_json", 502, "upstream_invalid_reply"),
        ("nan_logprob", 502, "upstream_invalid_logprob"),
        ("wrong_length", 502, "upstream_token_count_mismatch"),
        ("missing_token_ids", 502, "upstream_missing_token_ids"),
    ],
)
def test_a_failing_engine_changes_nothing_but_the_record(toy, fault: str, status: int, code: str) -> None:
    client, engine = toy
    session, history = started(client, engine)
    before = client.call("GET", f"/sessions/{session}").body
    engine.script(fault)
    answer = client.chat(session, [*history, user("ok")])
    assert (answer.status, answer.code) == (status, code), answer.body
    assert client.call("GET", f"/sessions/{session}").body == before
    record = Record.objects.filter(session_id=session).latest("pk")
    assert (record.state, record.error_code, record.raw_tail) == (
        "upstream_error",
        code,
        json.dumps([user("ok")]),
    )
    engine.script(Reply([102, 2], message=says("ok")))
    assert client.chat(session, [*history, user("ok")]).status == 200


def test_a_refused_rollback_writes_an_event_with_its_first_difference(toy) -> None:
    client, engine = toy
    session, history = started(client, engine, history_policy="rollback")
    engine.script(Reply([102, 2], message=says("ok")))
    client.chat(session, [*history, user("more")])
    answer = client.chat(session, [user("other")])
    assert answer.code == "rollback_too_deep"
    event = HistoryEvent.objects.get(session_id=session, kind="refused")
    assert (event.message_index, event.field) == (0, "content")
    assert (event.stored_value, event.replayed_value) == ('"hello"', '"other"')


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"history_policy": "chain"}, "history_policy"),
        ({"message_matcher": "os.system"}, "message_matcher"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"labels": {"a": 1}}, "labels"),
        ({"sampling": []}, "sampling"),
        ({"idle_timeout_s": -1}, "idle_timeout_s"),
        ({"profile": "nobody"}, "profile"),
        ({"healing": "yes"}, "healing"),
    ],
)
def test_a_bad_session_option_is_named(toy, options: dict[str, Any], key: str) -> None:
    client, _ = toy
    answer = client.call("POST", "/sessions", options)
    assert (answer.status, answer.code) == (400, "invalid_argument")
    assert key in answer.json["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'{"unknown": 1}'])
def test_an_odd_create_body_is_fine(toy, body: bytes) -> None:
    client, _ = toy
    assert client.call("POST", "/sessions", body).status == 200
