"""Spans of our own turns, as a collector gets them: phases and ids, never text, and never in a turn's way."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.client import Client, user
from tests.fakes.collector import Receiver
from tests.fakes.engine import Reply
from tests.integration.test_cases import says, toy_server
from trainer_export.models import Span

pytestmark = pytest.mark.django_db

SECRET = "zebra-crossing"
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def collector() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def served(tmp_path, collector: Receiver) -> Iterator[tuple[Client, Any]]:
    settings = {
        "TITO_OTLP_ENDPOINT": collector.url, "TITO_OTLP_EVERY_S": "0.1", "TITO_METRICS_OPEN": "on",
        "TITO_OTLP_HEADERS": '{"x-team": "rl"}',
    }  # fmt: skip
    with toy_server(tmp_path, **settings) as pair:
        yield pair


def received(collector: Receiver, turns: int) -> list[Any]:
    """What the collector has once so many turns are there."""
    for _ in range(600):
        if sum(span.name == "tito.turn" for span in collector.spans) >= turns:
            break
        time.sleep(0.05)
    return collector.spans


def test_a_turn_is_a_span_and_its_phases_are_spans_below_it(served, collector: Receiver) -> None:
    client, engine = served
    engine.script(Reply([100, 2], message=says(SECRET)))
    session = client.create()
    client.chat(session, [user(f"hello {SECRET}")], headers={"traceparent": f"00-{TRACE}-{CALLER}-01"})
    spans = received(collector, 1)
    (turn,) = (span for span in spans if span.name == "tito.turn")
    assert (turn.trace_id, turn.parent_id, turn.status_code) == (TRACE, CALLER, "OK")
    told = turn.attributes
    assert (told["tito.session_id"], told["tito.node"], told["tito.attach"]) == (session, 0, "root")
    assert (told["tito.outcome"], told["tito.generated_tokens"]) == ("answered", 2)
    phases = [span for span in spans if span.name != "tito.turn"]
    assert {span.parent_id for span in phases} == {turn.span_id}
    assert {"tito.parse", "tito.match", "tito.engine", "tito.commit"} <= {span.name for span in phases}
    assert all(turn.start_ns <= span.start_ns <= span.end_ns <= turn.end_ns for span in phases)
    assert not any(SECRET.encode() in body for body in collector.bodies)
    assert 'tito_own_spans_total{outcome="sent"} 1.0' in client.call("GET", "/metrics").body.decode()


def test_refused_and_failed_turns_say_their_code_and_no_text(served, collector: Receiver) -> None:
    client, engine = served
    session = client.create(max_turns=1)
    engine.script("503", Reply([100, 2], message=says(SECRET)))
    for _ in range(3):
        client.chat(session, [user(SECRET)])
    turns = [span for span in received(collector, 3) if span.name == "tito.turn"]
    assert [turn.status_code for turn in turns] == ["ERROR", "OK", "ERROR"]
    codes = [turn.attributes.get("tito.code") for turn in turns]
    assert codes == ["upstream_status", None, "max_turns_exceeded"]
    assert "tito.engine" in {span.name for span in collector.spans}
    assert not any(SECRET.encode() in body for body in collector.bodies)


def test_a_caller_that_does_not_sample_gets_no_span(served, collector: Receiver) -> None:
    client, engine = served
    session = client.create()
    for flags in ("00", "01"):
        engine.script(Reply([100, 2], message=says("ab")))
        client.chat(session, [user(flags)], headers={"traceparent": f"00-{TRACE}-{CALLER}-{flags}"})
    turns = [span for span in received(collector, 1) if span.name == "tito.turn"]
    assert [turn.attributes["tito.node"] for turn in turns] == [1]


def test_our_own_receiver_files_them_with_the_session_and_takes_none_for_a_call(
    served, collector: Receiver
) -> None:
    client, engine = served
    engine.script(Reply([100, 2], message=says("ab")))
    session = client.create()
    client.chat(session, [user("hello")])
    received(collector, 1)
    for body in collector.bodies:
        answer = client.call("POST", "/v1/traces", body, headers={"content-type": "application/x-protobuf"})
        assert answer.status == 200
    stored = Span.objects.filter(session_id=session)
    assert stored.filter(name="tito.turn").count() == 1
    assert stored.count() == len(collector.spans)
    assert not stored.filter(is_call=True).exists()


def test_a_collector_that_is_away_costs_no_turn(tmp_path, caplog) -> None:
    away = {"TITO_OTLP_ENDPOINT": "http://127.0.0.1:9/v1/traces", "TITO_OTLP_EVERY_S": "0.05"}
    with toy_server(tmp_path, TITO_METRICS_OPEN="on", **away) as (client, engine):
        for _ in range(3):
            engine.script(Reply([100, 2], message=says("ab")))
            assert client.chat(client.create(), [user("hello")]).status == 200
        for _ in range(600):
            metrics = client.call("GET", "/metrics").body.decode()
            if 'outcome="dropped"} 3.0' in metrics:
                break
            time.sleep(0.05)
        assert 'tito_own_spans_total{outcome="dropped"} 3.0' in metrics
    told = [record for record in caplog.records if "not taken by the collector" in record.message]
    assert len(told) == 1, "said once, not for every batch"
