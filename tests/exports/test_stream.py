"""GET /samples/stream: order, leases, acknowledgement, staleness, lateness."""

import time
import uuid
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from sessions_app.api import runtime
from sessions_app.api.wiring import conninfo
from tests.client import Client
from tests.exports.exporting import linear
from tests.fakes.engine import FakeEngine
from tests.integration.test_samples import forked
from trainer_export.samples.hooks import Hooks
from trainer_export.samples.pickers import PICKERS
from trainer_export.samples.validate import problems
from trainer_export.stream.serving import NO_ROWS


@pytest.fixture(autouse=True)
def _empty_stream() -> None:
    """What other tests finished is not this test's."""
    with psycopg.connect(conninfo(), autocommit=True) as connection:
        connection.execute("DELETE FROM trainer_export_frozensession WHERE handout_id IS NOT NULL")
        connection.execute("DELETE FROM trainer_export_handout")
        connection.execute(
            "UPDATE sessions_app_session SET finished_at = '2000-01-01' WHERE finished_at IS NOT NULL"
        )
        connection.execute(
            "INSERT INTO trainer_export_handout (unit, late, state, completed_at, consumer, deliveries) "
            "VALUES ('-', false, 'acked', '2001-01-01', '', 0)"
        )


def stream(client: Client, **query: Any) -> dict[str, Any]:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    answer = client.call("GET", f"/samples/stream?{text}")
    assert answer.status == 200, answer.body
    return answer.json


def ack(client: Client, lease: str, *ids: int, **more: Any) -> dict[str, Any]:
    answer = client.call("POST", "/samples/ack", {"lease": lease, "ids": list(ids), **more})
    assert answer.status == 200, answer.body
    return answer.json


def finished(client: Client, engine: FakeEngine, **options: Any) -> str:
    session = linear(client, engine, **options)
    client.call("POST", f"/sessions/{session}/finish", {})
    return session


def units(answer: dict[str, Any]) -> list[list[str]]:
    return [[row["session_id"] for row in group["rows"]] for group in answer["groups"]]


def test_groups_come_in_the_order_in_which_they_were_complete(toy) -> None:
    client, engine = toy
    groups = [uuid.uuid4().hex for _ in range(2)]
    made = [
        linear(client, engine, group_id=groups[at % 2], group_size=2, rollout_id=uuid.uuid4().hex)
        for at in range(4)
    ]
    for session in (made[0], made[1], made[3]):
        client.call("POST", f"/sessions/{session}/finish", {})
    alone = finished(client, engine)
    assert units(stream(client, limit=9)) == [[made[1], made[3]], [alone]]
    client.call("DELETE", f"/sessions/{made[2]}")
    last = stream(client, limit=9)
    assert units(last) == [[made[0], made[2]]]
    assert last["groups"][0]["group_id"] == groups[0]
    assert [problems(row) for row in last["groups"][0]["rows"]] == [[], []]


def test_what_is_open_is_not_handed_out(toy) -> None:
    client, engine = toy
    rollout = uuid.uuid4().hex
    linear(client, engine)
    finished(client, engine, rollout_id=rollout, attempt_id="1")
    second = linear(client, engine, rollout_id=rollout, attempt_id="2")
    assert stream(client)["groups"] == []
    client.call("POST", f"/sessions/{second}/finish", {})
    [group] = stream(client)["groups"]
    assert [row["rollout_weight"] for row in group["rows"]] == [0.5, 0.5]


def test_a_lease_keeps_others_away_until_it_has_run_out(toy) -> None:
    client, engine = toy
    finished(client, engine)
    first = stream(client, lease_s=0.3, consumer="a")
    assert stream(client)["groups"] == []
    time.sleep(0.35)
    second = stream(client, consumer="b")
    assert second["groups"][0]["id"] == first["groups"][0]["id"]
    assert second["groups"][0]["rows"] == first["groups"][0]["rows"]
    assert second["groups"][0]["deliveries"] == 2
    id = first["groups"][0]["id"]
    assert ack(client, first["lease"], id) == {"acked": [], "lost": [id]}
    assert ack(client, second["lease"], id) == {"acked": [id], "lost": []}
    assert ack(client, second["lease"], id) == {"acked": [id], "lost": []}, "saying so again changes nothing"
    assert stream(client)["groups"] == []


def test_a_late_acknowledgement_counts_while_nobody_else_has_the_group(toy) -> None:
    client, engine = toy
    finished(client, engine)
    got = stream(client, lease_s=0.01)
    time.sleep(0.05)
    assert ack(client, got["lease"], got["groups"][0]["id"])["lost"] == []


def test_what_is_given_back_is_the_next_ones(toy) -> None:
    client, engine = toy
    finished(client, engine)
    got = stream(client)
    id = got["groups"][0]["id"]
    assert ack(client, got["lease"], id, release=True) == {"acked": [id], "lost": []}
    assert stream(client)["groups"][0]["id"] == id


def test_numbers_of_shape_miles_are_each_groups_own_whenever_it_comes(toy) -> None:
    client, engine = toy
    for _ in range(2):
        group = uuid.uuid4().hex
        for _ in range(2):
            finished(client, engine, group_id=group, group_size=2, rollout_id=uuid.uuid4().hex)

    def numbers(**query: Any) -> dict[str, list[int]]:
        answer = stream(client, shape="miles", limit=2, **query)
        assert [len(group["rows"]) for group in answer["groups"]] == [2, 2]
        found = [row for group in answer["groups"] for row in group["rows"]]
        return {name: [row[name] for row in found] for name in ("group_index", "rollout_id", "index")}

    first = numbers(lease_s=0)
    assert {name: len(set(found)) for name, found in first.items()} == {
        "group_index": 2, "rollout_id": 4, "index": 4,
    }  # fmt: skip
    assert first["index"] == sorted(first["index"])
    assert numbers() == first


def test_concurrent_consumers_never_share_a_group(toy) -> None:
    from concurrent.futures import ThreadPoolExecutor

    client, engine = toy
    made = {finished(client, engine) for _ in range(8)}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: stream(client, limit=2), range(8)))
    handed = [session for answer in answers for unit in units(answer) for session in unit]
    assert sorted(handed) == sorted(made)


def test_groups_that_are_too_old_are_dropped_with_a_reason(toy) -> None:
    client, engine = toy
    finished(client, engine)
    answer = stream(client, min_weight_version=8)
    assert answer["groups"] == []
    assert "weight version '7'" in answer["dropped"][0]["reason"]
    assert stream(client)["groups"] == []
    finished(client, engine)
    client.call("POST", "/admin-api/weights", {"weight_version": "9"})
    assert len(stream(client, max_staleness=1)["dropped"]) == 1
    finished(client, engine)
    assert len(stream(client, max_staleness=2)["groups"]) == 1


def test_a_rollout_that_ends_after_its_group_is_late(toy) -> None:
    client, engine = toy
    group = uuid.uuid4().hex
    options = {"group_id": group, "group_size": 1}
    late = linear(client, engine, rollout_id=uuid.uuid4().hex, **options)
    first = finished(client, engine, rollout_id=uuid.uuid4().hex, **options)
    assert units(stream(client)) == [[first]]
    client.call("POST", f"/sessions/{late}/finish", {})
    [unit] = stream(client)["groups"]
    assert (unit["late"], unit["group_id"]) == (True, group)
    assert [row["session_id"] for row in unit["rows"]] == [late]


def test_a_group_whose_size_is_told_late_hands_nothing_out_twice(toy) -> None:
    client, engine = toy
    group = uuid.uuid4().hex
    first = finished(client, engine, group_id=group, rollout_id=uuid.uuid4().hex)
    assert units(stream(client)) == [[first]], "of a group without a size each rollout is a unit"
    second = finished(client, engine, group_id=group, group_size=2, rollout_id=uuid.uuid4().hex)
    assert units(stream(client, limit=9)) == [[second]]


def test_a_group_of_which_nothing_is_left_is_dropped_with_a_reason(toy) -> None:
    client, engine = toy
    empty = client.create()
    client.call("POST", f"/sessions/{empty}/finish", {})
    full = finished(client, engine)
    answer = stream(client)
    assert units(answer) == [[full]]
    assert [(one["unit"], one["reason"]) for one in answer["dropped"]] == [(f"r::{empty}", NO_ROWS)]
    assert stream(client)["dropped"] == []


def test_a_request_that_fails_keeps_no_group(toy) -> None:
    """A staleness that cannot be counted: the profile's weights are no number."""
    client, engine = toy
    session = finished(client, engine)
    with psycopg.connect(conninfo(), autocommit=True) as connection:
        connection.execute("UPDATE sessions_app_modelprofile SET weight_version = 'latest'")
    refused = client.call("GET", "/samples/stream?max_staleness=1&lease_s=86400")
    assert (refused.status, refused.code) == (400, "invalid_argument")
    answer = stream(client)
    assert units(answer) == [[session]]
    assert answer["groups"][0]["deliveries"] == 1


def test_groups_without_rewards_wait_if_asked(toy) -> None:
    client, engine = toy
    session = finished(client, engine)
    assert stream(client, rewarded="true")["groups"] == []
    client.call("POST", f"/sessions/{session}/rewards", {"value": 3})
    [group] = stream(client, rewarded="true")["groups"]
    assert group["rows"][0]["reward"] == 3.0


def test_shapes_and_cursor(toy) -> None:
    client, engine = toy
    for _ in range(2):
        finished(client, engine)
    first = stream(client, shape="trl")
    assert set(first["groups"][0]["rows"][0]) >= {"prompt_ids", "completion_ids", "logprobs"}
    assert first["cursor"] == first["groups"][0]["id"]
    second = stream(client, cursor=first["cursor"], shape="verl")
    assert second["cursor"] > first["cursor"]


def test_waiting_for_the_first_group(toy) -> None:
    import threading

    client, engine = toy
    session = linear(client, engine)
    timer = threading.Timer(0.7, lambda: client.call("POST", f"/sessions/{session}/finish", {}))
    timer.start()
    assert units(stream(client, wait_s=10)) == [[session]]
    timer.join()


def test_two_branches_are_two_rows_of_one_unit(toy) -> None:
    client, engine = toy
    session = forked(client, engine)
    client.call("POST", f"/sessions/{session}/finish", {"reward": 1})
    [group] = stream(client)["groups"]
    assert [row["rollout_weight"] for row in group["rows"]] == [0.5, 0.5]
    assert [row["reward"] for row in group["rows"]] == [1.0, 1.0]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=65", "limit=x", "lease_s=-1", "wait_s=61", "shape=x", "colour=red",
              "cursor=-1", "min_weight_version=new", "rewarded=maybe", "lease_s=nan"],
)  # fmt: skip
def test_odd_queries_are_refused(toy, query: str) -> None:
    answer = toy[0].call("GET", f"/samples/stream?{query}")
    assert (answer.status, answer.code) == (400, "invalid_argument")


@pytest.mark.parametrize(
    "body", [{}, {"lease": "x", "ids": [1]}, {"lease": "0" * 32}, {"lease": "0" * 32, "ids": []},
             {"lease": "0" * 32, "ids": ["1"]}, {"lease": "0" * 32, "ids": [True]},
             {"lease": "0" * 32, "ids": [2**63]}, {"lease": "0" * 32, "ids": [1], "colour": 1}],
)  # fmt: skip
def test_odd_acknowledgements_are_refused(toy, body: dict[str, Any]) -> None:
    answer = toy[0].call("POST", "/samples/ack", body)
    assert (answer.status, answer.code) == (400, "invalid_argument")


def test_a_group_whose_rows_cannot_be_made_is_dropped_in_the_words_of_the_fault(toy, monkeypatch) -> None:
    def broken(samples: list[Any], session_metadata: dict[str, Any]) -> list[Any]:
        raise RuntimeError("out of order")

    client, engine = toy
    session = finished(client, engine)
    service = runtime.current().stream
    monkeypatch.setattr(
        service,
        "_making",
        replace(service._making, hooks=Hooks("keep_all", PICKERS["keep_all"], "ours", broken)),
    )
    (dropped,) = stream(client)["dropped"]
    assert dropped["reason"] == (
        f"no rows: {session}: session sample hook failed (picker=keep_all, postprocessor=ours): out of order"
    )
