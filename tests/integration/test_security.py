"""What an attacker tries first, on a whole server."""

import gzip
import io
import logging
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from sessions_app.models import Record
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server
from tito_project.content_policy import POLICY
from tito_project.json_logs import JsonFormatter

MARKER = "Zanzibar-4711"
TOKEN = "admin-token-of-this-test"


@pytest.fixture(scope="module")
def guarded(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator[tuple[Client, FakeEngine]]:
    folder = tmp_path_factory.mktemp("guarded")
    settings = {"TITO_AUTH": "token", "TITO_ADMIN_TOKEN": TOKEN}
    with django_db_blocker.unblock(), toy_server(folder, **settings) as pair:
        yield pair


def opened(client: Client) -> tuple[str, dict[str, str]]:
    """A session and the header that opens it."""
    answer = client.call("POST", "/sessions", {}, {"Authorization": f"Bearer {TOKEN}"})
    return answer.json["session_id"], {"Authorization": f"Bearer {answer.headers['x-tito-session-key']}"}


def raw(client: Client, request: bytes) -> bytes:
    """Everything that the server says to some bytes."""
    parts = urlsplit(client.url)
    received = b""
    with socket.create_connection((parts.hostname, parts.port), timeout=2) as connection:
        connection.sendall(request)
        try:
            while chunk := connection.recv(65536):
                received += chunk
        except TimeoutError:
            pass
    return received


def statuses(answer: bytes) -> list[int]:
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


def test_a_packed_body_is_refused_unread(guarded) -> None:
    client, engine = guarded
    session, key = opened(client)
    seen = len(engine.requests)
    bomb = gzip.compress(b" " * 50_000_000)
    path = f"/sessions/{session}/v1/chat/completions"
    answer = client.call("POST", path, bomb, {**key, "Content-Encoding": "gzip"})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")
    assert client.call("POST", path, bomb, key).code == "invalid_json"
    assert len(engine.requests) == seen


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 5\r\nContent-Length: 50\r\n",
        b"Content-Length: 5, 50\r\n",
        b"Content-Length: +5\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Transfer-Encoding:\x0bchunked\r\n",
        b"X: a\r\n b: folded\r\nContent-Length : 5\r\n",
    ],
)
def test_a_request_of_two_lengths_is_never_two_requests(guarded, headers: bytes) -> None:
    client, engine = guarded
    seen = len(engine.requests)
    smuggled = b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = raw(client, b"POST /sessions HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + smuggled)
    assert statuses(answer) in ([400], [])
    assert len(engine.requests) == seen


def test_a_header_with_an_underscore_is_no_header_with_a_hyphen(guarded) -> None:
    client, _ = guarded
    _, key = opened(client)
    value = key["Authorization"].removeprefix("Bearer ")
    answer = raw(client, f"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX_Api_Key: {value}\r\n\r\n".encode())
    assert statuses(answer) == [401]


def test_two_credentials_open_nothing(guarded) -> None:
    client, _ = guarded
    session, key = opened(client)
    twice = f"Authorization: {key['Authorization']}\r\nAuthorization: Bearer other\r\n"
    answer = raw(client, f"GET /sessions/{session} HTTP/1.1\r\nHost: localhost\r\n{twice}\r\n".encode())
    assert statuses(answer)[0] in (401, 404)


def test_ones_key_opens_nothing_of_another(guarded) -> None:
    client, engine = guarded
    (mine, key), (theirs, their_key) = opened(client), opened(client)
    engine.script(Reply([100, 2], message=says(MARKER)))
    assert client.chat(theirs, [user(MARKER)], their_key).status == 200
    paths = ("", "/samples", "/finish", "/rewards", "/v1/chat/completions", "/tokenize")
    for path in paths:
        for method in ("GET", "POST", "DELETE"):
            answer = client.call(method, f"/sessions/{theirs}{path}", {"messages": [user("x")]}, key)
            assert answer.status in (404, 405), (method, path, answer.status)
            assert MARKER.encode() not in answer.body
    for path in ("/api/sessions", f"/api/sessions/{theirs}", "/metrics", f"/api/sessions/{mine}"):
        assert client.call("GET", path, headers=key).status == 401


ODD_REQUESTS = (
    {"messages": MARKER},
    {"messages": [MARKER]},
    {"messages": [{"role": MARKER, "content": MARKER}]},
    {"messages": [user(MARKER)], "n": 2, "stop": MARKER},
    {"messages": [user(MARKER)], "input_ids": [1]},
    {"messages": [user(MARKER + "\ud800")]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": MARKER}}]}]},
    {"messages": [user(MARKER)], "tools": MARKER},
    {"messages": [user(MARKER)], "max_tokens": MARKER},
    {"messages": [user(MARKER)], "chat_template_kwargs": MARKER},
)
FAULTS = ("500", "malformed_json", "nan_logprob", "cut", "null_content")


def loud(handler: logging.Handler) -> Callable[[], None]:
    """Everything that is logged, at DEBUG, goes to a handler too; call the result to end that."""
    root = logging.getLogger()
    loggers = [root, *(one for one in root.manager.loggerDict.values() if isinstance(one, logging.Logger))]
    levels = {logger: logger.level for logger in loggers}
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        if logger is root or not logger.propagate:
            logger.addHandler(handler)

    def quiet() -> None:
        for logger, level in levels.items():
            logger.setLevel(level)
            logger.removeHandler(handler)

    return quiet


def test_neither_text_nor_keys_come_into_logs_or_error_bodies(guarded, caplog) -> None:
    client, engine = guarded
    session, key = opened(client)
    path = f"/sessions/{session}/v1/chat/completions"
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.setFormatter(JsonFormatter())
    quieted = loud(handler)
    logging.getLogger("sessions_app.turns").debug("a canary")
    try:
        engine.script(Reply([100, 2], message=says(MARKER)))
        history = [user(MARKER), reply_of(client.chat(session, [user(MARKER)], key)), user("ok")]
        bodies = [client.call("POST", path, body, key).body for body in ODD_REQUESTS]
        for fault in FAULTS:
            engine.script(fault)
            bodies.append(client.chat(session, history, key).body)
        engine.script(Reply([102, 2], message={"role": "assistant", "content": 7, "tool_calls": MARKER}))
        client.chat(session, history, key)
        bodies.append(client.chat("0" * 32, [user(MARKER)], {"Authorization": f"Bearer {MARKER}"}).body)
        bodies.append(client.call("POST", path, MARKER, key).body)
    finally:
        quieted()
    assert [body for body in bodies if MARKER.encode() in body] == []
    written = lines.getvalue() + caplog.text
    assert '"node": 0' in written, "the journal itself was not heard"
    assert "a canary" in written, "what is said at DEBUG was not heard"
    assert session in written
    for secret in (MARKER, TOKEN, key["Authorization"].removeprefix("Bearer ")):
        assert secret not in written
    assert Record.objects.filter(session_id=session, state="upstream_error").exists()


def test_the_admin_pages_load_from_here_only(client: Browser, django_user_model) -> None:
    client.force_login(User.objects.create(username="boss", is_staff=True, is_superuser=True))
    answer = client.get("/admin/")
    assert answer["Content-Security-Policy"] == POLICY
    assert answer["X-Frame-Options"] == "DENY"
    page = answer.content.decode()
    assert re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*json)[^>]*>", page) == []
    assert re.findall(r"\son[a-z]+=\"", page) == []


def test_guessing_a_password_ends_soon(client: Browser) -> None:
    User.objects.create_superuser("keeper", password="the right one")
    form = {"username": "keeper", "password": "wrong"}
    answers = [client.post("/admin/login/", form).status_code for _ in range(10)]
    assert answers[0] == 200
    assert answers[-1] == 429
    right = {**form, "password": "the right one"}
    assert client.post("/admin/login/", right).status_code == 429
    assert client.post("/admin/login/", right, REMOTE_ADDR="10.9.8.7").status_code == 302


def test_the_default_log_says_nothing_of_turns() -> None:
    code = (
        "import django; django.setup(); import logging;"
        "print(logging.getLogger('sessions_app.turns.journal').isEnabledFor(logging.INFO))"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "TITO_LOG_FORMAT": form, "DJANGO_SETTINGS_MODULE": "tito_project.settings"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for form in ("line", "json")
    ]
    assert told == ["False", "True"]
