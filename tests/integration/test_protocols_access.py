"""Which session a request means, and who may use it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.fakes.engine import FakeEngine
from tests.integration.servers import shared_server, toy_environment

ADMIN = "the-admin-token"
CHAT = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(scope="class")
def open_server(engine: FakeEngine, django_db_setup: None, django_db_blocker: Any) -> Iterator[httpx.Client]:
    environment = toy_environment(engine) | {"TITO_AUTO_SESSIONS": "true"}
    with shared_server(django_db_blocker, environment) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="class")
def closed_server(
    engine: FakeEngine, django_db_setup: None, django_db_blocker: Any
) -> Iterator[httpx.Client]:
    environment = toy_environment(engine) | {"TITO_AUTH": "token", "TITO_ADMIN_TOKEN": ADMIN}
    with shared_server(django_db_blocker, environment) as url, httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture(scope="class")
def limited_server(
    engine: FakeEngine, django_db_setup: None, django_db_blocker: Any
) -> Iterator[httpx.Client]:
    environment = toy_environment(engine) | {"TITO_KEY_RATE": "2"}
    with shared_server(django_db_blocker, environment) as url, httpx.Client(base_url=url) as client:
        yield client


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def create(client: httpx.Client, **options: object) -> tuple[str, str]:
    response = client.post("/sessions", json=options, headers=bearer(ADMIN))
    assert response.status_code == 200, response.text
    return response.json()["session_id"], response.headers["X-Tito-Session-Key"]


def chat(client: httpx.Client, path: str = "", **headers: str) -> httpx.Response:
    return client.post(f"{path}/v1/chat/completions", json=CHAT, headers=headers)


class TestWithAuthentication:
    def test_a_key_opens_its_session_by_url_and_without(self, closed_server: httpx.Client) -> None:
        session, key = create(closed_server)
        by_url = chat(closed_server, f"/sessions/{session}", **bearer(key))
        by_key = chat(closed_server, **bearer(key))
        by_header = chat(closed_server, **{"X-Api-Key": key})
        assert [by_url.status_code, by_key.status_code, by_header.status_code] == [200] * 3
        assert [r.headers["X-Tito-Node"] for r in (by_url, by_key, by_header)] == ["0", "1", "2"]

    def test_a_key_opens_nothing_of_another_session(self, closed_server: httpx.Client) -> None:
        (_, my_key), (other, _) = create(closed_server), create(closed_server)
        headers = bearer(my_key)
        refused = [
            chat(closed_server, f"/sessions/{other}", **headers),
            chat(closed_server, **headers, **{"X-Session-Id": other}),
            closed_server.get(f"/sessions/{other}", headers=headers),
            closed_server.delete(f"/sessions/{other}", headers=headers),
            closed_server.get(f"/sessions/{other}/v1/models", headers=headers),
            closed_server.post(f"/sessions/{other}/tokenize", json={}, headers=headers),
            closed_server.get(f"/v1/responses/resp_{other}00000000", headers=headers),
        ]
        assert [response.status_code for response in refused] == [404] * len(refused)
        assert {response.headers["X-Tito-Error-Code"] for response in refused} == {"session_not_found"}
        assert closed_server.get(f"/sessions/{other}", headers=bearer(ADMIN)).json()["records"] == []

    @pytest.mark.parametrize(
        "headers", [{}, bearer("tito-nonsense"), {"Authorization": "Basic dGl0by1ub25zZW5zZQ=="}]
    )
    def test_no_key_or_an_unknown_one_is_refused(
        self, closed_server: httpx.Client, headers: dict[str, str]
    ) -> None:
        response = chat(closed_server, **headers)
        assert response.status_code == 401
        assert response.headers["X-Tito-Error-Code"] == "unauthorized"
        assert response.json()["error"]["type"] == "authentication_error"
        assert "nonsense" not in response.text

    def test_the_admin_token_names_its_session_in_a_header(self, closed_server: httpx.Client) -> None:
        session, _ = create(closed_server)
        assert chat(closed_server, **bearer(ADMIN), **{"X-Session-Id": session}).status_code == 200
        assert chat(closed_server, **bearer(ADMIN)).status_code == 401

    def test_session_ids_of_harnesses_are_no_ids_of_ours(self, closed_server: httpx.Client) -> None:
        _, key = create(closed_server)
        assert chat(closed_server, **bearer(key), **{"X-Session-Id": "ses_41fe"}).status_code == 200

    def test_a_key_of_the_rollout_opens_all_its_attempts(self, closed_server: httpx.Client) -> None:
        _, key = create(closed_server, rollout_id="r-1", attempt_id="0")
        _, stranger = create(closed_server, rollout_id="r-2", attempt_id="0")
        first = chat(closed_server, "/rollout/r-1/attempt/0", **bearer(key))
        second = chat(closed_server, "/rollout/r-1/attempt/1", **bearer(key))
        again = chat(closed_server, "/rollout/r-1/attempt/1", **bearer(ADMIN))
        assert [r.headers["X-Tito-Node"] for r in (first, second, again)] == ["0", "0", "1"]
        assert chat(closed_server, "/rollout/r-1/attempt/0", **bearer(stranger)).status_code == 401
        assert chat(closed_server, "/rollout/r-1/attempt/0").status_code == 401

    def test_the_key_of_an_attempt_is_told_to_the_admin_who_created_it(
        self, closed_server: httpx.Client
    ) -> None:
        refused = closed_server.post("/rollout/r-3/attempt/0/v1/chat/completions", json={"messages": 1},
                                     headers=bearer(ADMIN))  # fmt: skip
        assert refused.status_code == 400
        key = refused.headers["X-Tito-Session-Key"]
        again = chat(closed_server, "/rollout/r-3/attempt/0", **bearer(ADMIN))
        assert "X-Tito-Session-Key" not in again.headers
        next_one = chat(closed_server, "/rollout/r-3/attempt/1", **bearer(key))
        assert (next_one.status_code, next_one.headers["X-Tito-Node"]) == (200, "0")
        assert "X-Tito-Session-Key" not in next_one.headers
        streamed = {**CHAT, "stream": True}
        stream = closed_server.post("/rollout/r-4/attempt/0/v1/chat/completions", json=streamed,
                                    headers=bearer(ADMIN))  # fmt: skip
        assert chat(closed_server, **bearer(stream.headers["X-Tito-Session-Key"])).status_code == 200

    def test_a_key_taken_from_one_attempt_opens_none_of_its_rollout(
        self, closed_server: httpx.Client
    ) -> None:
        session, key = create(closed_server, rollout_id="r-5", attempt_id="0")
        other, apart = create(closed_server, rollout_id="r-5", attempt_id="9")
        assert chat(closed_server, "/rollout/r-5/attempt/1", **bearer(key)).status_code == 200
        closed_server.delete(f"/api/sessions/{session}/keys", headers=bearer(ADMIN))
        for attempt in "012":
            assert chat(closed_server, f"/rollout/r-5/attempt/{attempt}", **bearer(key)).status_code == 401
        assert chat(closed_server, **bearer(key)).status_code == 401
        assert chat(closed_server, f"/sessions/{other}", **bearer(apart)).status_code == 200

    def test_a_rotated_key_opens_the_session_and_the_old_one_nothing(
        self, closed_server: httpx.Client
    ) -> None:
        session, old = create(closed_server)
        assert chat(closed_server, **bearer(old)).status_code == 200
        path = f"/api/sessions/{session}/keys"
        assert closed_server.post(path, headers=bearer(old)).status_code == 401
        rotated = closed_server.post(path, headers=bearer(ADMIN))
        new = rotated.json()["key"]
        assert rotated.headers["X-Tito-Session-Key"] == new
        assert chat(closed_server, **bearer(old)).status_code == 401
        assert chat(closed_server, f"/sessions/{session}", **bearer(old)).status_code == 404
        assert chat(closed_server, **bearer(new)).headers["X-Tito-Node"] == "1"

    def test_a_revoked_session_opens_to_the_admin_alone(self, closed_server: httpx.Client) -> None:
        session, key = create(closed_server)
        assert closed_server.delete(f"/api/sessions/{session}/keys", headers=bearer(ADMIN)).status_code == 204
        assert chat(closed_server, **bearer(key)).status_code == 401
        assert chat(closed_server, f"/sessions/{session}", **bearer(ADMIN)).status_code == 200
        missing = closed_server.delete(f"/api/sessions/{'0' * 32}/keys", headers=bearer(ADMIN))
        assert (missing.status_code, missing.json()["code"]) == (404, "session_not_found")

    def test_keys_reach_neither_the_engine_nor_the_log(
        self, closed_server: httpx.Client, engine: FakeEngine, caplog: pytest.LogCaptureFixture
    ) -> None:
        session, key = create(closed_server)
        with caplog.at_level("DEBUG"):
            chat(closed_server, **bearer(key))
            chat(closed_server, f"/sessions/{session}", **{"X-Api-Key": key, "X-Session-Id": session})
            closed_server.get("/v1/models", headers=bearer(key[:-1]))
        for received in engine.requests[-2:]:
            assert key not in str(received.headers)
            assert "authorization" not in received.headers
        ours = [record.getMessage() for record in caplog.records if record.name.startswith("sessions_app")]
        assert not any(key[:-1] in line for line in ours)

    def test_the_list_of_models_needs_a_key_of_some_session(self, closed_server: httpx.Client) -> None:
        _, key = create(closed_server)
        assert closed_server.get("/v1/models").status_code == 401
        assert closed_server.get("/v1/models", headers=bearer(key)).status_code == 200


class TestWithoutAuthentication:
    def test_a_key_may_be_the_bare_session_id(self, open_server: httpx.Client) -> None:
        session, _ = create(open_server)
        first = chat(open_server, **bearer(session))
        second = chat(open_server, **{"X-Session-Id": session})
        assert [first.headers["X-Tito-Node"], second.headers["X-Tito-Node"]] == ["0", "1"]

    def test_an_unknown_key_makes_a_session_once(self, open_server: httpx.Client) -> None:
        with ThreadPoolExecutor(8) as pool:
            responses = list(pool.map(lambda _: chat(open_server, **bearer("run-7")), range(8)))
        assert {response.status_code for response in responses} == {200}
        assert sorted(int(r.headers["X-Tito-Node"]) for r in responses) == list(range(8))

    def test_the_body_names_the_session_where_no_header_does(self, open_server: httpx.Client) -> None:
        bodies = [
            {"metadata": {"session_id": "body-1"}, "user": "ignored"},
            {"user": "body-2"},
            {"metadata": {"session_id": "body-1"}},
            {"user": "body-2"},
        ]
        responses = [open_server.post("/v1/chat/completions", json={**CHAT, **body}) for body in bodies]
        assert [response.headers["X-Tito-Node"] for response in responses] == ["0", "0", "1", "1"]

    def test_an_attempt_gets_one_session(self, open_server: httpx.Client) -> None:
        path = "/rollout/open/attempt/a"
        with ThreadPoolExecutor(4) as pool:
            responses = list(pool.map(lambda _: chat(open_server, path), range(4)))
        assert sorted(int(r.headers["X-Tito-Node"]) for r in responses) == list(range(4))

    def test_a_developer_is_fed_as_the_system_by_key_and_as_the_template_has_it_by_url(
        self, open_server: httpx.Client, engine: FakeEngine
    ) -> None:
        session, _ = create(open_server)
        body = {"messages": [{"role": "developer", "content": "Help."}, *CHAT["messages"]]}
        fed = []
        for path in (f"/sessions/{session}", "", "/rollout/dev/attempt/0"):
            response = open_server.post(f"{path}/v1/chat/completions", json=body, headers=bearer("dev-1"))
            assert response.status_code == 200
            fed.append(engine.bodies[-1]["messages"][0]["role"])
        assert fed == ["developer", "system", "system"]
        reply = {"role": "assistant", "content": response.json()["choices"][0]["message"]["content"]}
        more = {"messages": [*body["messages"], reply, *CHAT["messages"]]}
        second = open_server.post("/rollout/dev/attempt/0/v1/chat/completions", json=more)
        assert second.headers["X-Tito-Attach"] == "append"

    def test_an_odd_attempt_name_is_a_clear_refusal(self, open_server: httpx.Client) -> None:
        response = chat(open_server, "/rollout/a%00b/attempt/1")
        assert (response.status_code, response.headers["X-Tito-Error-Code"]) == (400, "invalid_argument")


class TestModels:
    def test_the_list_is_a_list_of_models(self, open_server: httpx.Client) -> None:
        body = open_server.get("/v1/models").json()
        assert body["object"] == "list"
        assert "default" in [model["id"] for model in body["data"]]
        assert {model["object"] for model in body["data"]} == {"model"}

    def test_anthropic_clients_get_their_own_shape(self, open_server: httpx.Client) -> None:
        body = open_server.get("/v1/models", headers={"anthropic-version": "2023-06-01"}).json()
        assert body["has_more"] is False
        assert body["data"][0]["type"] == "model"


class TestRates:
    def test_a_key_that_asks_too_often_is_told_when_to_come_back(self, limited_server: httpx.Client) -> None:
        session, other = (limited_server.post("/sessions").json()["session_id"] for _ in range(2))
        answers = [chat(limited_server, **bearer(session)) for _ in range(6)]
        assert answers[0].status_code == 200
        refused = next(answer for answer in answers if answer.status_code == 429)
        assert refused.headers["X-Tito-Error-Code"] == "rate_limited"
        assert refused.headers["Retry-After"] == "1"
        assert refused.headers["X-Should-Retry"] == "true"
        assert refused.json()["error"]["type"] == "rate_limit_error"
        assert chat(limited_server, **bearer(other)).status_code == 200
