"""POST /sessions: what may be asked for, and what a session does with it."""

from typing import Any

import pytest

from tests.client import Client, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_bad_input import toy  # noqa: F401  (fixture)
from tests.integration.test_cases import says

Toy = tuple[Client, FakeEngine]


@pytest.mark.parametrize(
    "body", [b"", b"null", b"[]", b"{", b"\xff", b'"x"', b"[" * 100_000, b'{"unknown": 1, "labels": null}']
)
def test_an_empty_or_odd_body_is_fine(toy: Toy, body: bytes) -> None:  # noqa: F811
    answer = toy[0].call("POST", "/sessions", body)
    assert (answer.status, list(answer.json)) == (200, ["session_id"])
    assert answer.headers["x-tito-session-key"].startswith("tito-")


@pytest.mark.parametrize(
    "option",
    [
        {"history_policy": "Tree"}, {"on_nonlinear": 1}, {"message_matcher": "os.path.samefile"},
        {"retry_policy": ""}, {"healing": 1}, {"healing": "true"}, {"on_truncated": "cut"},
        {"max_context_tokens": 0}, {"max_context_tokens": True}, {"max_turns": 1.0}, {"max_turns": 2**31},
        {"idle_timeout_s": 0}, {"idle_timeout_s": float("inf")}, {"profile": "nowhere"}, {"labels": {"a": 1}},
        {"rollout_id": "a\x00"}, {"attempt_id": "\ud800"}, {"group_size": 0}, {"sampling": []},
        {"sampling": {"n": 1}}, {"sampling": {"messages": []}}, {"sampling": {"input_ids": []}},
        {"sampling": {"tools": None}}, {"sampling": {"stream": True}},
    ],
)  # fmt: skip
def test_a_known_key_with_a_bad_value_is_refused_by_name(toy: Toy, option: dict[str, Any]) -> None:  # noqa: F811
    answer = toy[0].call("POST", "/sessions", option)
    assert (answer.status, answer.code) == (400, "invalid_argument")
    assert next(iter(option)) in answer.json["error"]


def test_an_attempt_has_one_session(toy: Toy) -> None:  # noqa: F811
    client, _ = toy
    first = client.create(rollout_id="r", attempt_id="1")
    assert client.call("POST", "/sessions", {"rollout_id": "r", "attempt_id": "1"}).code == "invalid_argument"
    assert client.call("DELETE", f"/sessions/{first}").status == 204
    client.create(rollout_id="r", attempt_id="1")


def test_forced_sampling_wins_over_the_client(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create(sampling={"temperature": 0.5, "seed": 123456789012345678901})
    engine.script(Reply([100, 2], message=says("ab")))
    client.chat(session, [user("hello")], temperature=1.0, top_p=0.9)
    sent = engine.bodies[-1]
    assert (sent["temperature"], sent["seed"], sent["top_p"]) == (0.5, 123456789012345678901, 0.9)


@pytest.mark.parametrize("forced", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
@pytest.mark.parametrize("asked", ["max_tokens", "max_completion_tokens", "max_output_tokens"])
def test_a_forced_token_limit_wins_whatever_name_the_client_gives_its_own(
    toy: Toy,  # noqa: F811
    forced: str,
    asked: str,
) -> None:
    client, engine = toy
    session = client.create(sampling={forced: 7})
    engine.script(Reply([100, 2], message=says("ab")))
    client.chat(session, [user("hello")], **{asked: 500})
    limits = {name: value for name, value in engine.bodies[-1].items() if name.startswith("max_")}
    assert limits == {"max_completion_tokens" if forced == "max_completion_tokens" else "max_tokens": 7}


def test_a_limit_by_any_name_is_kept_below_the_room_that_is_left(toy: Toy) -> None:  # noqa: F811
    client, engine = toy
    session = client.create(max_context_tokens=1000)
    engine.script(Reply([100, 2], message=says("ab")))
    client.chat(session, [user("hello")], max_output_tokens=5)
    assert engine.bodies[-1]["max_tokens"] == 5
