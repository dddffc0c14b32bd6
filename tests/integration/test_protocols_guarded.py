"""Keys, limits and origins, the same in every protocol and each in its protocol's shape."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment

ADMIN = "the-admin-token"
MESSAGES = [{"role": "user", "content": "hello"}]
BODIES: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": MESSAGES},
    "messages": {"messages": MESSAGES, "max_tokens": 9},
    "messages/count_tokens": {"messages": MESSAGES},
    "responses": {"input": "hello"},
}


@pytest.fixture(scope="class")
def closed(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[httpx.Client]:
    keys = {"TITO_AUTH": "token", "TITO_ADMIN_TOKEN": ADMIN, "TITO_MAX_BODY_MB": "1"}
    environment = toy_environment(engine) | keys
    with shared_server(django_db_blocker, environment) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="class")
def limited(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[httpx.Client]:
    environment = toy_environment(engine) | {"TITO_KEY_RATE": "1"}
    with shared_server(django_db_blocker, environment) as url, httpx.Client(base_url=url) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def create(client: httpx.Client) -> tuple[str, str]:
    response = client.post("/sessions", headers=bearer(ADMIN))
    return response.json()["session_id"], response.headers["X-Tito-Session-Key"]


def ask(client: httpx.Client, path: str, headers: dict[str, str], before: str = "") -> httpx.Response:
    return client.post(f"{before}/v1/{path}", json=BODIES[path], headers=headers)


def kind_of_error(path: str, response: httpx.Response) -> str:
    """The type of an error in its protocol's shape, which it must have."""
    body = response.json()
    if path.startswith("messages"):
        assert body.keys() == {"type", "error"}
        assert body["type"] == "error"
    else:
        assert body["error"].keys() == {"message", "type", "param", "code"}
    return str(body["error"]["type"])


@pytest.mark.parametrize("path", BODIES)
class TestKeys:
    def test_without_a_key_nothing_opens(self, closed: httpx.Client, path: str) -> None:
        for headers in ({}, bearer("tito-nonsense")):
            response = ask(closed, path, headers)
            assert response.status_code == 401
            assert kind_of_error(path, response) == "authentication_error"
            assert "nonsense" not in response.text + str(response.headers)

    def test_another_session_is_not_there(self, closed: httpx.Client, path: str) -> None:
        (_, mine), (other, _) = create(closed), create(closed)
        response = ask(closed, path, bearer(mine), f"/sessions/{other}")
        assert (response.status_code, response.headers["X-Tito-Error-Code"]) == (404, "session_not_found")
        assert mine not in response.text + str(response.headers)

    def test_a_rotated_and_a_revoked_key_open_nothing(self, closed: httpx.Client, path: str) -> None:
        session, old = create(closed)
        keys = f"/api/sessions/{session}/keys"
        assert ask(closed, path, bearer(old)).status_code == 200
        new = closed.post(keys, headers=bearer(ADMIN)).json()["key"]
        assert [ask(closed, path, bearer(key)).status_code for key in (old, new)] == [401, 200]
        assert closed.delete(keys, headers=bearer(ADMIN)).status_code == 204
        assert ask(closed, path, bearer(new)).status_code == 401

    def test_keys_stay_here(
        self, closed: httpx.Client, engine: FakeEngine, path: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        session, key = create(closed)
        before = len(engine.requests)
        with caplog.at_level("DEBUG"):
            ask(closed, path, {**bearer(key), "X-Api-Key": key, "Cookie": f"k={key}"})
            ask(closed, path, {"X-Api-Key": key}, f"/sessions/{session}")
            ask(closed, path, bearer(key), f"/sessions/{'0' * 32}")
        for received in engine.requests[before:]:
            assert key not in str(received.header_lines) + received.query + received.raw.decode()
        lines = [record.getMessage() for record in caplog.records if not record.name.startswith("httpcore")]
        assert not any(key in line for line in lines)
        assert key not in closed.get(f"/sessions/{session}", headers=bearer(ADMIN)).text

    def test_no_page_of_another_origin_is_told_that_it_may_read(
        self, closed: httpx.Client, path: str
    ) -> None:
        _, key = create(closed)
        origin = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
        answers = [
            closed.options(f"/v1/{path}", headers=origin),
            ask(closed, path, {**bearer(key), **origin}),
        ]
        assert [answer.status_code for answer in answers] == [405, 200]
        for answer in answers:
            assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", BODIES)
class TestLimits:
    def test_a_key_that_asks_too_often_is_told_when_to_come_back(
        self, limited: httpx.Client, path: str
    ) -> None:
        session = limited.post("/sessions").json()["session_id"]
        answers = [ask(limited, path, bearer(session)) for _ in range(5)]
        assert answers[0].status_code == 200
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert kind_of_error(path, refused) == "rate_limit_error"
        assert refused.headers["X-Tito-Error-Code"] == "rate_limited"
        assert (refused.headers["Retry-After"], refused.headers["X-Should-Retry"]) == ("1", "true")

    def test_a_foreign_page_is_refused_where_there_are_no_keys(
        self, limited: httpx.Client, path: str
    ) -> None:
        session = limited.post("/sessions").json()["session_id"]
        origin = {"Origin": "https://elsewhere.example"}
        response = ask(limited, path, {**bearer(session), **origin})
        assert (response.status_code, response.headers["X-Tito-Error-Code"]) == (403, "forbidden_origin")
        assert not [name for name in response.headers if name.startswith("access-control")]


class TestCounts:
    def counted(self, client: httpx.Client) -> dict[str, float]:
        text = client.get("/metrics", headers=bearer(ADMIN)).text
        found = re.findall(r'^tito_error_answers_total\{code="(\w+)"\} (\S+)$', text, re.MULTILINE)
        return {code: float(count) for code, count in found}

    def test_refusals_that_leave_no_record_are_counted_by_code(self, closed: httpx.Client) -> None:
        from sessions_app.models import Record

        before, records = self.counted(closed), Record.objects.count()
        ask(closed, "messages", bearer("nonsense"))
        closed.post("/v1/messages", content=b"{}", headers={"content-type": "text/plain"})
        closed.post("/v1/responses", content=b"{}", headers={"host": "evil.example"})
        closed.post("/v1/responses", content=bytes(2**20 + 1))
        closed.get("/no/such/page")
        codes = "unauthorized", "unsupported_media_type", "invalid_host", "body_too_large", "not_found"
        after = self.counted(closed)
        assert {code: after[code] - before.get(code, 0) for code in codes} == dict.fromkeys(codes, 1)
        assert Record.objects.count() == records


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_the_address_alone_leads_to_the_sessions(closed: httpx.Client, method: str) -> None:
    response = closed.request(method, "/")
    assert (response.status_code, response.headers["location"]) == (302, "/admin/sessions_app/session/")
