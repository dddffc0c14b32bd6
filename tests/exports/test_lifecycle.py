"""Finish, idle reaper, and what is known of rollouts and groups."""

import json
import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from sessions_app.api.wiring import conninfo
from sessions_app.models import Session
from tests.client import Answer, Client, user
from tests.exports.exporting import export, rows
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says
from tests.integration.test_samples import ask
from trainer_export.lifecycle.reaping import reap_idle
from trainer_export.samples.codec import decode_samples


def turn(client: Client, engine: FakeEngine, session: str) -> Answer:
    engine.script(Reply([102, 2], message=says("ok")))
    return client.chat(session, [user("hello")])


def finish(client: Client, session: str, **body: Any) -> Answer:
    return client.call("POST", f"/sessions/{session}/finish", body)


def test_a_finished_session_serves_no_more_turns_but_samples(toy) -> None:
    client, engine = toy
    session = client.create()
    assert turn(client, engine, session).status == 200
    answer = finish(client, session, status="solved", reward=0.5, metadata={"grader": "unit"})
    assert answer.json == {
        "session_id": session,
        "status": "solved",
        "changed": True,
        "rollout": {"rollout_id": session, "finished": True, "group": None},
    }
    refused = client.chat(session, [user("hello"), says("ok"), user("ab")])
    assert (refused.status, refused.code) == (409, "session_closed")
    [sample] = ask(client, session).json["samples"]
    assert sample["reward"] == 0.5
    assert sample["metadata"]["grader"] == "unit"


def test_the_samples_request_says_it_over_what_finish_said(toy) -> None:
    client, engine = toy
    session = client.create()
    turn(client, engine, session)
    finish(client, session, reward=0.5, metadata={"a": 1, "b": 1, "reward": 3})
    [sample] = ask(client, session, {"metadata": {"b": 2}}).json["samples"]
    assert (sample["metadata"]["a"], sample["metadata"]["b"]) == (1, 2)
    assert sample["reward"] == 3, "the driver's metadata names a reward itself"


def test_finishing_again_changes_nothing_and_other_words_are_refused(toy) -> None:
    client, _ = toy
    session = client.create()
    words = {"status": "failed", "reward": 0, "metadata": {"n": 12345678901234567890123}}
    assert finish(client, session, **words).json["changed"] is True
    before = Session.objects.get(id=session).version
    assert finish(client, session, **words).json["changed"] is False
    for other in ({}, {**words, "reward": 1}, {**words, "metadata": {}}, {**words, "status": "solved"}):
        answer = finish(client, session, **other)
        assert (answer.status, answer.code) == (409, "session_closed")
    assert Session.objects.get(id=session).version == before
    assert Session.objects.get(id=session).rewards.count() == 1


def test_an_empty_body_finishes(toy) -> None:
    client, _ = toy
    answer = client.call("POST", f"/sessions/{client.create()}/finish", b"")
    assert answer.json["status"] == "completed"


@pytest.mark.parametrize(
    "body",
    [
        b"[]", b"7", b'{"status": 1}', b'{"status": ""}', b'{"status": "\\u0000"}', b'{"reward": "1"}',
        b'{"reward": true}', b'{"reward": NaN}', b'{"reward": 1e999}', b'{"metadata": []}',
        b'{"metadata": "x"}',
    ],
)  # fmt: skip
def test_odd_words_are_refused_and_finish_nothing(toy, body: bytes) -> None:
    client, _ = toy
    session = client.create()
    answer = client.call("POST", f"/sessions/{session}/finish", body)
    assert (answer.status, answer.code) == (400, "invalid_argument")
    assert answer.json["code"] == "invalid_argument"
    assert Session.objects.get(id=session).status == "open"


def test_unknown_and_deleted_sessions_are_not_found(toy) -> None:
    client, _ = toy
    deleted = client.create()
    client.call("DELETE", f"/sessions/{deleted}")
    for session in (deleted, "0" * 32, "x"):
        answer = finish(client, session)
        assert (answer.status, answer.code) == (404, "session_not_found")


def test_a_reply_that_comes_after_finish_is_kept_beside_the_tree(toy) -> None:
    import threading

    client, engine = toy
    session, gate, answers = client.create(), threading.Event(), []
    engine.script(Reply([102, 2], message=says("ok"), gate=gate))
    before = len(engine.requests)
    thread = threading.Thread(target=lambda: answers.append(client.chat(session, [user("hello")])))
    thread.start()
    engine.wait_seen(before + 1)
    finish(client, session)
    gate.set()
    thread.join()
    assert answers[0].headers["x-tito-reason"] == "session_closed"
    assert ask(client, session).json["empty_reason"] == "no_records"


def committed(query: str, *parameters: Any) -> None:
    """A statement outside of the test's own transaction."""
    with psycopg.connect(conninfo(), autocommit=True) as connection:
        connection.execute(query, parameters)


def aged(session: str, seconds: float) -> None:
    """As if everything of the session had happened that much earlier."""
    back = timedelta(seconds=seconds)
    committed(
        "UPDATE sessions_app_session SET last_activity_at = last_activity_at - %s WHERE id = %s",
        back,
        session,
    )
    committed(
        "UPDATE sessions_app_record SET arrived_at = arrived_at - %s WHERE session_id = %s", back, session
    )


def status(session: str) -> str:
    return Session.objects.get(id=session).status


def test_what_is_idle_for_too_long_ends_and_nothing_else(toy) -> None:
    client, engine = toy
    idle, recent, endless = (
        client.create(idle_timeout_s=60),
        client.create(idle_timeout_s=60),
        client.create(),
    )
    for session in (idle, recent, endless):
        turn(client, engine, session)
    aged(idle, 61)
    aged(recent, 30)
    aged(endless, 10**6)
    assert reap_idle(conninfo()) >= 1
    assert [status(session) for session in (idle, recent, endless)] == ["idle", "open", "open"]
    assert Session.objects.get(id=idle).finished_at is not None
    refused = turn(client, engine, idle)
    assert (refused.status, refused.code) == (409, "session_closed")
    assert ask(client, idle).json["samples"]


def test_a_session_that_waits_for_its_engine_is_not_idle(toy) -> None:
    client, engine = toy
    session = client.create(idle_timeout_s=1)
    turn(client, engine, session)
    aged(session, 100)
    committed("UPDATE sessions_app_record SET state = 'intent' WHERE session_id = %s", session)
    reap_idle(conninfo())
    assert status(session) == "open"
    committed(
        "UPDATE sessions_app_record SET state = 'refused', arrived_at = now() WHERE session_id = %s", session
    )
    reap_idle(conninfo())
    assert status(session) == "open", "a refused request is a sign of life, too"
    aged(session, 100)
    reap_idle(conninfo())
    assert status(session) == "idle"


def test_a_driver_may_still_finish_what_the_reaper_ended(toy) -> None:
    client, engine = toy
    session = client.create(idle_timeout_s=1)
    turn(client, engine, session)
    aged(session, 100)
    reap_idle(conninfo())
    ended = Session.objects.get(id=session).finished_at
    assert finish(client, session, reward=1).json["changed"] is True
    assert status(session) == "finished"
    assert Session.objects.get(id=session).finished_at == ended


def test_what_finish_says_is_kept_to_the_last_odd_character(toy, tmp_path) -> None:
    client, engine = toy
    session = client.create()
    turn(client, engine, session)
    said = '{"k\\ud800": "a\\udc00\\u0000", "big": 123456789012345678901}'
    for changed in (True, False):
        answer = client.call("POST", f"/sessions/{session}/finish", f'{{"metadata": {said}}}'.encode())
        assert (answer.status, answer.json["changed"]) == (200, changed)
    blob = client.call("POST", f"/sessions/{session}/samples", {}).body
    export(tmp_path, "--format", "jsonl", sessions=[session])
    told = [
        ask(client, session).json["samples"][0]["metadata"],
        decode_samples(blob).samples[0]["metadata"],
        rows(tmp_path, format="jsonl")[0]["metadata"],
    ]
    for metadata in told:
        assert metadata.items() >= json.loads(said).items()


def test_a_group_is_complete_when_group_size_rollouts_are(toy) -> None:
    client, _ = toy
    group, names = uuid.uuid4().hex, [uuid.uuid4().hex for _ in range(3)]
    first = client.create(group_id=group, group_size=3, rollout_id=names[0], attempt_id="1")
    again = client.create(group_id=group, group_size=3, rollout_id=names[0], attempt_id="2")
    second, third = (client.create(group_id=group, rollout_id=name) for name in names[1:])
    rollout = finish(client, first).json["rollout"]
    assert rollout["finished"] is False, "its second attempt is open"
    assert rollout["group"] == {
        "group_id": group, "group_size": 3, "rollouts": 3, "finished_rollouts": 0, "complete": False,
    }  # fmt: skip
    assert finish(client, again).json["rollout"]["finished"] is True
    client.call("DELETE", f"/sessions/{second}")
    assert finish(client, third).json["rollout"]["group"]["complete"] is True
    with connection.cursor() as cursor:
        cursor.execute("SELECT complete, finished_rollouts FROM export_groups WHERE group_id = %s", [group])
        assert cursor.fetchall() == [(True, 3)]
