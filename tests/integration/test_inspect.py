"""Looking at sessions over /api and /metrics: what is told is what happened."""

from collections.abc import Iterator

import pytest

from sessions_app.api.metrics import MetricsView
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply
from tests.integration.test_cases import says, toy_server


@pytest.fixture
def served(tmp_path) -> Iterator[tuple[Client, FakeEngine, str]]:
    with toy_server(tmp_path) as (client, engine):
        session = client.create(labels={"run": "r1"}, group_id="g1", sampling={"temperature": 0.5})
        engine.script(*[Reply([100, 2], message=says("ab"))] * 3)
        first = reply_of(client.chat(session, [user("hello")]))
        client.chat(session, [user("hello"), first, user("ok")])
        client.chat(session, [user("hello"), first, user("other")])
        client.chat(session, [user("x")], n=2)
        yield client, engine, session


def test_a_session_tells_settings_counters_and_causes(served) -> None:
    client, _, session = served
    body = client.call("GET", f"/api/sessions/{session}").json
    assert (body["id"], body["history_policy"], body["turns"], body["forks"]) == (session, "tree", 3, 1)
    assert body["labels"] == {"run": "r1"}
    assert body["events"] == {"fork": {"message_edited": 1}}
    healer = body["metadata"]["linear_healer"]
    assert (healer["healed_turns"], healer["nonlinear"], healer["close_unresolved"]) == (2, 0, 0)
    assert healer["healed_prefix_tokens"] == 2 * (11 + 1)


def test_pages_of_nodes_records_and_events(served) -> None:
    client, _, session = served
    nodes = client.call("GET", f"/api/sessions/{session}/nodes?limit=2").json
    assert [node["seq"] for node in nodes["nodes"]] == [0, 1]
    rest = client.call("GET", f"/api/sessions/{session}/nodes?limit=2&after={nodes['next']}").json
    assert [node["attach_kind"] for node in rest["nodes"]] == ["fork"]
    assert rest["next"] is None
    records = client.call("GET", f"/api/sessions/{session}/records").json["records"]
    assert [record["state"] for record in records] == ["confirmed", "committed", "committed", "refused"]
    (event,) = client.call("GET", f"/api/sessions/{session}/events").json["events"]
    assert (event["message_index"], event["field"], event["char_offset"]) == (2, "content", 1)
    assert (event["stored_value"], event["replayed_value"]) == ('"ok"', '"other"')
    assert event["token_index"] is not None


def test_a_node_with_its_ids(served) -> None:
    client, _, session = served
    node = client.call("GET", f"/api/nodes/{session}:1?include=tokens,logprobs").json
    assert node["tokens"]["completion"] == [100, 2]
    assert len(node["tokens"]["logprobs"]) == 2
    assert [message["role"] for message in node["messages"]] == ["user", "assistant"]
    for missing in (f"{session}:9", f"{session}:x", f"{session}", "nobody:1"):
        assert client.call("GET", f"/api/nodes/{missing}").status == 404


def test_lists_are_narrowed_and_paged(served) -> None:
    client, _, session = served
    found = client.call("GET", "/api/sessions?group_id=g1&limit=1").json
    assert found["sessions"][0]["id"] == session
    assert client.call("GET", f"/api/sessions?id_prefix={session[:6]}").json["sessions"]
    assert client.call("GET", "/api/sessions?status=finished&group_id=g1").json["sessions"] == []
    for query in ("limit=0", "limit=x", "cursor=yesterday"):
        answer = client.call("GET", f"/api/sessions?{query}")
        assert (answer.status, answer.code) == (400, "invalid_argument")


@pytest.mark.parametrize("number", ["--5", "%C2%B2", "1e3", "+1", "9" * 30, "%D9%A3", "1%0A"])
def test_odd_numbers_are_refused(served, number: str) -> None:
    client, _, session = served
    for path in (f"/api/sessions/{session}/events?after={number}", f"/api/sessions?limit={number}"):
        assert client.call("GET", path).code == "invalid_argument"
    assert client.call("GET", f"/api/nodes/{session}:{number}").code == "not_found"


def test_the_record_shows_the_agents_sampling_and_the_forced_one(served) -> None:
    client, engine, session = served
    engine.script(Reply([100, 2], message=says("ab")))
    client.chat(session, [user("y")], temperature=1.5, top_p=0.9)
    assert engine.bodies[-1]["temperature"] == 0.5
    assert engine.bodies[-1]["top_p"] == 0.9


def test_metrics_tell_turns_forks_and_latencies(served) -> None:
    client, _, _ = served
    MetricsView._cached = None
    text = client.call("GET", "/metrics").body.decode()
    for name in (
        "tito_turns_total", "tito_healed_turns_total", "tito_in_flight", "tito_engine_up 1.0",
        'tito_history_events_total{cause="message_edited",kind="fork"}',
        'tito_records_total{state="refused"}',
        'tito_turn_seconds_count{phase="engine"}',
    ):  # fmt: skip
        assert name in text, name
