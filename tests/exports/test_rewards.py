"""Rewards: targets, idempotency, lateness."""

from typing import Any

import pytest

from sessions_app.models import Reward
from tests.client import Answer, Client, user
from tests.fakes.engine import Reply
from tests.integration.test_cases import says
from tests.integration.test_samples import ask, forked
from trainer_export.models import Sample


def reward(client: Client, session: str, body: Any, **headers: str) -> Answer:
    return client.call("POST", f"/sessions/{session}/rewards", body, headers)


def test_a_session_reward_is_on_every_sample_and_a_leaf_reward_wins(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    assert reward(client, session, {"value": 1}).status == 200
    assert reward(client, session, {"leaf": 2, "value": 4, "weight": 0.5, "name": "judge"}).status == 200
    assert [sample["reward"] for sample in ask(client, session).json["samples"]] == [1.0, 2.0]


def test_a_node_can_be_named_by_its_response_id(toy) -> None:
    client, engine = toy
    session = client.create()
    engine.script(Reply([102, 2], message=says("ok"), identity="resp-of-mine"))
    client.chat(session, [user("hello")])
    answer = reward(client, session, {"response_id": "resp-of-mine", "value": 3})
    assert answer.json["rewards"][0]["node"] == 0
    assert Reward.objects.get(session_id=session).node_seq == 0


def test_equal_reports_are_one_and_others_add_up(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    made = [reward(client, session, {"value": value}).json["rewards"][0] for value in (1, 1, 2)]
    assert [one["created"] for one in made] == [True, False, True]
    assert made[0]["key"] == made[1]["key"]
    assert ask(client, session).json["samples"][0]["reward"] == 3.0


def test_a_key_belongs_to_one_reward(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    first = {"value": 1, "key": "k"}
    assert reward(client, session, first).json["rewards"] == [{"key": "k", "node": None, "created": True}]
    assert reward(client, session, first).json["rewards"] == [{"key": "k", "node": None, "created": False}]
    for other in ({"value": 2}, {"value": 1, "node": 0}, {"value": 1, "name": "x"}):
        answer = reward(client, session, {**other, "key": "k"})
        assert (answer.status, answer.code) == (409, "idempotency_conflict")
    assert reward(client, session, {"value": 1}, **{"Idempotency-Key": "k"}).status == 200
    assert Reward.objects.filter(session_id=session).count() == 1


def test_a_list_is_stored_in_whole_or_not_at_all(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    bad = [{"value": 1}, {"value": 2, "node": 99}]
    assert reward(client, session, {"rewards": bad}).status == 404
    clash = [{"value": 1, "key": "a"}, {"value": 2, "key": "a"}]
    assert reward(client, session, {"rewards": clash}).status == 409
    assert not Reward.objects.filter(session_id=session).exists()
    good = [{"value": 1}, {"value": 2, "node": 1}, {"value": 1}]
    assert [one["created"] for one in reward(client, session, {"rewards": good}).json["rewards"]] == [
        True, True, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_argument"),
        (b"{", 400, "invalid_json"),
        (b"[]", 400, "invalid_argument"),
        (b'{"value": null}', 400, "invalid_argument"),
        (b'{"value": "1"}', 400, "invalid_argument"),
        (b'{"value": true}', 400, "invalid_argument"),
        (b'{"value": NaN}', 400, "invalid_argument"),
        (b'{"value": 1e999}', 400, "invalid_argument"),
        (b'{"value": 1, "weight": Infinity}', 400, "invalid_argument"),
        (b'{"value": 1, "node": -1}', 400, "invalid_argument"),
        (b'{"value": 1, "node": 1.0}', 400, "invalid_argument"),
        (b'{"value": 1, "node": 99999999999}', 400, "invalid_argument"),
        (b'{"value": 1, "node": 7}', 404, "not_found"),
        (b'{"value": 1, "response_id": "nobody"}', 404, "not_found"),
        (b'{"value": 1, "leaf": 0}', 400, "invalid_argument"),
        (b'{"value": 1, "leaf": 1, "node": 1}', 400, "invalid_argument"),
        (b'{"value": 1, "name": ""}', 400, "invalid_argument"),
        (b'{"value": 1, "name": "\\ud800"}', 400, "invalid_argument"),
        (b'{"value": 1, "key": "\\u0000"}', 400, "invalid_argument"),
        (b'{"value": 1, "nodes": 1}', 400, "invalid_argument"),
        (b'{"rewards": []}', 400, "invalid_argument"),
        (b'{"rewards": {"value": 1}}', 400, "invalid_argument"),
        (b'{"rewards": [1]}', 400, "invalid_argument"),
    ],
)
def test_odd_reports_are_refused(toy, body: bytes, status: int, code: str) -> None:
    client, engine = toy
    session = forked(client, engine)
    answer = reward(client, session, body)
    assert (answer.status, answer.code) == (status, code)
    assert not Reward.objects.filter(session_id=session).exists()


def test_a_reward_may_come_after_delete(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    client.call("DELETE", f"/sessions/{session}")
    assert reward(client, session, {"value": 1}).status == 200
    assert reward(client, "0" * 32, {"value": 1}).code == "session_not_found"
    assert reward(client, "x", {"value": 1}).code == "session_not_found"


def test_a_late_reward_marks_what_was_handed_out_as_stale(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    ask(client, session)
    handed = Sample.objects.filter(session_id=session).order_by("leaf_seq")
    assert [(row.leaf_seq, row.trained_tokens, row.via, row.stale_at) for row in handed] == [
        (1, 5, "http", None), (2, 2, "http", None),
    ]  # fmt: skip
    reward(client, session, {"value": 1, "key": "k"})
    assert {row.stale_reason for row in handed.all()} == {"reward"}
    ask(client, session)
    assert {row.stale_reason for row in handed.all()} == {None}
    reward(client, session, {"value": 1, "key": "k"})
    assert {row.stale_reason for row in handed.all()} == {None}, "the same report again is no news"
