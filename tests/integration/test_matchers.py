"""Matchers of the settings over HTTP: custom ones decide, misbehaving ones change nothing."""

import sys
from pathlib import Path

import pytest

from tests.client import reply_of, user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server

HOOKS = Path(__file__).parent.parent / "vectors" / "history" / "config"


@pytest.fixture(autouse=True)
def hooks_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HOOKS))
    sys.modules.pop("vector_hooks", None)


def test_a_custom_matcher_attaches_by_walking(tmp_path) -> None:
    with toy_server(tmp_path, TITO_MESSAGE_MATCHER="vector_hooks.ignore_case") as (client, engine):
        session = client.create()
        engine.script(*[Reply([100, 2], message=says("ab"))] * 3)
        client.chat(session, [user("hello")])
        answer = client.chat(session, [user("HELLO"), says("AB"), user("ok")])
        assert (answer.headers["x-tito-attach"], answer.headers["x-tito-parent"]) == ("append", "0")
        other = client.chat(session, [user("hello"), says("xx"), user("ok")])
        assert other.headers["x-tito-attach"] == "fork"


@pytest.mark.parametrize(
    ("hook", "code", "text"),
    [
        ("raises", "matcher_raised", "session message matcher raised an exception"),
        ("non_bool", "matcher_contract", "session message matcher must return bool, got int"),
    ],
)
@pytest.mark.parametrize("policy", ["tree", "rollback"])
def test_a_misbehaving_matcher_never_decides(tmp_path, hook: str, code: str, text: str, policy: str) -> None:
    settings = {"TITO_MESSAGE_MATCHER": f"vector_hooks.{hook}", "TITO_HISTORY_POLICY": policy}
    with toy_server(tmp_path, **settings) as (client, engine):
        session = client.create()
        engine.script(Reply([100, 2], message=says("ab")))
        first = reply_of(client.chat(session, [user("hello")]))
        before = client.call("GET", f"/sessions/{session}").body
        answer = client.chat(session, [user("hello"), first, user("ok")])
        assert (answer.status, answer.code, answer.json) == (500, code, {"error": text})
        assert client.call("GET", f"/sessions/{session}").body == before
        assert len(engine.requests) == 1


def test_a_matcher_that_cannot_be_resolved_stops_the_start(tmp_path) -> None:
    with (
        pytest.raises(RuntimeError, match="did not start"),
        toy_server(tmp_path, TITO_MESSAGE_MATCHER="vector_hooks.missing"),
    ):
        pass
