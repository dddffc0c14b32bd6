"""Several engines behind one server: sessions stay where their prefix is cached, whichever process serves
them, and move when they must. Records say who served them."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sessions_app.models import Record
from tests.client import Client, reply_of, user
from tests.fakes.engine import FakeEngine, Reply, Status
from tests.harness import running_server
from tests.integration.servers import toy_environment
from tests.integration.web import web_processes

BACKENDS = ["sglang", "sglang-generate", "vllm", "vllm-completions", "vllm-chat"]
AFFINITY = {"sglang": "x-smg-routing-key", "sglang-generate": "x-smg-routing-key"}
IDS = [104, 105, 258]


@pytest.fixture
def engines() -> Iterator[list[FakeEngine]]:
    with FakeEngine() as one, FakeEngine() as other:
        yield [one, other]


def environment(engines: list[FakeEngine], backend: str, **more: str) -> dict[str, str]:
    urls = ",".join(engine.url for engine in engines)
    return toy_environment(engines[0], backend) | {"TITO_BACKEND_URL": urls} | more


def turn(client: Client, session: str, history: list) -> list:
    answer = client.chat(session, history)
    assert answer.status == 200, answer.body
    return [*history, reply_of(answer), user("more")]


def workers(session: str) -> list[str]:
    return list(Record.objects.filter(session_id=session).order_by("id").values_list("worker", flat=True))


@pytest.mark.parametrize("backend", BACKENDS)
def test_sessions_spread_and_stay_and_each_record_says_where(engines, backend):
    for engine in engines:
        engine.script(*[Reply(IDS, cached_tokens=3)] * 24)
    with running_server(environment(engines, backend)) as url:
        client = Client(url)
        sessions = [client.create() for _ in range(8)]
        for session in sessions:
            history = [user("a")]
            for _ in range(3):
                history = turn(client, session, history)
    served = {session: set(workers(session)) for session in sessions}
    assert all(len(each) == 1 for each in served.values())
    assert set().union(*served.values()) == {engine.url for engine in engines}
    header = AFFINITY.get(backend, "x-session-id")
    told = {request.headers[header] for engine in engines for request in engine.requests}
    assert told == set(sessions)
    record = Record.objects.filter(session_id=sessions[0]).latest("id")
    assert record.engine_ms > 0
    assert record.cached_tokens == (3 if backend.startswith("sglang") else 0)


def test_sessions_of_a_dead_engine_move_and_the_others_stay(engines):
    with ExitStack() as running:
        dying = running.enter_context(FakeEngine())
        for engine in (dying, engines[0]):
            engine.script(*[Reply(IDS)] * 16)
        with running_server(environment([dying, engines[0]], "sglang")) as url:
            client = Client(url)
            histories = {session: [user("a")] for session in (client.create() for _ in range(8))}
            histories = {each: turn(client, each, history) for each, history in histories.items()}
            running.close()
            histories = {each: turn(client, each, history) for each, history in histories.items()}
    served = [workers(session) for session in histories]
    assert {first for first, _ in served} == {dying.url, engines[0].url}
    assert {second for _, second in served} == {engines[0].url}


@pytest.mark.slow
def test_another_web_process_asks_the_same_engine(engines):
    for engine in engines:
        engine.script(*[Reply(IDS)] * 24)
    with web_processes(2, environment(engines, "sglang")) as processes:
        one, other = (process.client for process in processes)
        sessions = [one.create() for _ in range(8)]
        for session in sessions:
            turn(other, session, turn(one, session, [user("a")]))
    served = [workers(session) for session in sessions]
    assert all(first == second for first, second in served)
    assert len({first for first, _ in served}) == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_out_in_linear_and_passes_untouched_on_the_reference_path(
    engines, backend, status
):
    busy = Status(status, {"retry-after": "0", "x-up": "1"}, b"busy  as it came")
    engine = engines[0]
    with running_server(environment([engine], backend)) as url:
        client = Client(url)
        engine.script(busy, Reply(IDS))
        assert client.chat(client.create(history_policy="linear"), [user("a")]).status == 200
        assert len(engine.requests) == 2
        for policy in ("tree", "rollback"):
            engine.script(busy)
            answer = client.chat(client.create(history_policy=policy), [user("a")])
            assert (answer.status, answer.body, answer.headers["x-up"]) == (status, busy.body, "1")
            assert answer.headers["retry-after"] == "0"
        assert len(engine.requests) == 4


def test_weights_that_never_change_are_told_in_the_metrics(engines):
    settings = environment(engines[:1], "sglang", TITO_METRICS_OPEN="on")
    with running_server(settings) as url:
        client = Client(url)
        for version in ("v1", "v2"):
            client.call("POST", "/admin-api/weights", {"weight_version": version})
            engines[0].script(Reply(IDS, weight_version="7"))
            client.chat(client.create(), [user("a")])
            metrics = client.call("GET", "/metrics").body.decode()
            stuck = next(line for line in metrics.splitlines() if line.startswith("tito_weights_stuck"))
            assert float(stuck.rpartition(" ")[2]) == (1.0 if version == "v2" else 0.0)


def test_a_dropped_sampling_field_is_told_once_for_a_profile(engines, caplog):
    with running_server(environment(engines[:1], "vllm")) as url:
        client = Client(url)
        for _ in range(3):
            engines[0].script(Reply(IDS))
            client.chat(client.create(), [user("a")], dry_multiplier=0.8)
    assert len([each for each in caplog.records if "dry_multiplier" in each.getMessage()]) == 1
    assert all("dry_multiplier" not in json.dumps(body) for body in engines[0].bodies)
