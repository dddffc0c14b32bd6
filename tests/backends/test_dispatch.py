"""Sending: failover before a byte was sent, patience with Retry-After, cancellation, load."""

import asyncio
import threading
import time

import pytest

from sessions_app import errors
from sessions_app.backends.base import Backend
from sessions_app.backends.demo.faults import Status
from tests.backends.engines import ENGINES
from tests.backends.requests import SESSION, make_dispatcher, make_request, started
from tests.fakes.engine import FakeEngine, Reply

DEAD = "http://127.0.0.1:9"


def sglang(*urls: str, **options: float) -> Backend:
    return ENGINES["sglang"](make_dispatcher(*urls, **options))


def busy(status: int = 503, after: str = "0.01") -> Status:
    return Status(status, {"retry-after": after}, b"busy")


async def test_a_refused_engine_is_left_for_another_and_the_session_stays_there():
    async with FakeEngine() as engine, started(sglang(DEAD, engine.url)) as backend:
        done = [await backend.generate(make_request(worker=DEAD)) for _ in range(2)]
    assert {each.worker for each in done} == {engine.url}
    assert len(engine.requests) == 2


@pytest.mark.parametrize("host", ["a..b", "a" * 70])
async def test_a_host_that_is_no_name_is_left_like_a_refused_one(host):
    nowhere = f"http://{host}:80"
    async with FakeEngine() as engine:
        async with started(sglang(nowhere, engine.url, check_every_s=0.01)) as backend:
            await until(lambda: engine.health_checks > 3)
            assert (await backend.generate(make_request(worker=nowhere))).worker == engine.url
        async with started(sglang(nowhere)) as backend:
            with pytest.raises(errors.UpstreamUnreachable):
                await backend.generate(make_request())


async def test_a_header_that_cannot_be_sent_is_a_typed_error():
    async with FakeEngine() as engine, started(sglang(engine.url)) as backend:
        with pytest.raises(errors.UpstreamUnreachable):
            await backend.generate(make_request(headers={"x-odd": "a\r\nb"}))
    assert engine.requests == []


async def test_a_reset_exchange_is_not_repeated_on_another_engine():
    async with FakeEngine() as one, FakeEngine() as other:
        one.script("cut")
        other.script("cut")
        async with started(sglang(one.url, other.url)) as backend:
            with pytest.raises(errors.UpstreamUnreachable):
                await backend.generate(make_request())
    assert len(one.requests) + len(other.requests) == 1


async def test_sessions_move_off_an_engine_that_fails_its_health_checks_and_return_is_possible():
    async with FakeEngine() as sick, FakeEngine() as well:
        sick.health_status = 500
        async with started(sglang(sick.url, well.url, check_every_s=0.02)) as backend:
            await asyncio.sleep(0.15)
            assert (await backend.generate(make_request(worker=sick.url))).worker == well.url
            sick.health_status = 200
            await asyncio.sleep(0.1)
            assert (await backend.generate(make_request(worker=sick.url))).worker == sick.url


async def test_one_engine_alone_is_never_called_unasked():
    async with FakeEngine() as engine, started(sglang(engine.url, check_every_s=0.01)):
        await asyncio.sleep(0.05)
    assert (engine.requests, engine.health_checks) == ([], 0)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_patient_request_waits_out_retry_after(status):
    async with FakeEngine() as engine:
        engine.script(busy(status), busy(status, "0.1"), Reply(ids=[104]))
        async with started(ENGINES["sglang-generate"](make_dispatcher(engine.url))) as backend:
            begun = time.monotonic()
            done = await backend.generate(make_request(patient=True))
    assert done.ids.tolist() == [104]
    assert time.monotonic() - begun >= 0.11
    assert len(engine.requests) == 3


async def test_retry_after_may_be_a_date():
    async with FakeEngine() as engine:
        past, far = "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2099 07:28:00 GMT"
        engine.script(busy(503, past), Reply(ids=[104]), busy(503, far))
        async with started(ENGINES["vllm"](make_dispatcher(engine.url))) as backend:
            assert (await backend.generate(make_request(patient=True))).ids.tolist() == [104]
            with pytest.raises(errors.UpstreamStatus):
                await backend.generate(make_request(patient=True))
    assert len(engine.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        busy(500),
        busy(503, "soon"),
        busy(429, "3600"),
        Status(503, {}, b""),
        busy(429, "nan"),
        busy(503, "-1"),
    ],
)
async def test_patience_ends_where_nothing_was_promised(answer):
    async with FakeEngine() as engine:
        engine.script(answer)
        async with started(ENGINES["vllm"](make_dispatcher(engine.url))) as backend:
            with pytest.raises(errors.UpstreamStatus):
                await backend.generate(make_request(patient=True))
    assert len(engine.requests) == 1


async def test_patience_is_bounded_and_nobody_is_patient_by_default():
    async with FakeEngine() as engine:
        engine.script(*[busy()] * 9)
        async with started(sglang(engine.url)) as backend:
            with pytest.raises(errors.UpstreamStatus):
                await backend.generate(make_request())
            assert len(engine.requests) == 1
            with pytest.raises(errors.UpstreamStatus):
                await backend.generate(make_request(patient=True))
    assert len(engine.requests) == 5


@pytest.mark.parametrize("name", ENGINES)
async def test_cancelling_closes_the_engines_connection(name):
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104], gate=threading.Event()))
        async with started(ENGINES[name](make_dispatcher(engine.url))) as backend:
            task = asyncio.create_task(backend.generate(make_request()))
            await engine.seen(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: engine.abandoned == 1)


@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_the_native_protocol_aborts_by_request_id(how):
    async with FakeEngine() as engine:
        engine.script(Reply(ids=[104], gate=threading.Event()))
        timeout_s = 0.2 if how == "timeout" else 5.0
        dispatcher = make_dispatcher(engine.url, timeout_s=timeout_s)
        async with started(ENGINES["sglang-generate"](dispatcher)) as backend:
            request = make_request(headers={"authorization": "Bearer key"})
            task = asyncio.create_task(backend.generate(request))
            await engine.seen(1)
            if how == "cancel":
                task.cancel()
            with pytest.raises((asyncio.CancelledError, errors.UpstreamTimeout)):
                await task
            await until(lambda: [each.body for each in engine.aborted] == [{"rid": engine.bodies[0]["rid"]}])
    headers = engine.aborted[0].headers
    assert (headers["x-smg-routing-key"], headers["authorization"]) == (SESSION, "Bearer key")
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ENGINES)
async def test_other_requests_are_forwarded_as_they_are(name):
    async with FakeEngine() as engine, started(ENGINES[name](make_dispatcher(DEAD, engine.url))) as backend:
        engine.script(Status(418, {"x-tea": "1"}, b"short"))
        reply = await backend.forward(
            session_id=SESSION,
            method="PUT",
            path="v1/embeddings",
            query="a=%20b",
            body=b"\x00raw",
            headers={"x-custom": "1", "connection": "x-private", "x-private": "2", "host": "elsewhere"},
        )
    assert (reply.status, reply.body, reply.headers["x-tea"]) == (418, b"short", "1")
    received = engine.requests[0]
    assert (received.method, received.path, received.query) == ("PUT", "/v1/embeddings", "a=%20b")
    assert received.raw == b"\x00raw"
    assert received.headers["x-custom"] == "1"
    assert "x-private" not in received.headers
    assert SESSION in received.headers.values()


async def test_readiness_asks_the_health_endpoint():
    async with FakeEngine() as engine, started(sglang(DEAD, engine.url)) as backend:
        assert await backend.ready()
        engine.health_status = 503
        assert not await backend.ready()


async def test_hundreds_of_generations_in_flight_share_one_thread():
    before = threading.active_count()
    async with FakeEngine() as engine:
        engine.script(*[Reply(ids=[104, 258], delay_s=0.5) for _ in range(300)])
        async with started(sglang(engine.url)) as backend:
            begun = time.monotonic()
            requests = [make_request(session_id=f"{number:032x}") for number in range(300)]
            done = await asyncio.gather(*map(backend.generate, requests))
            assert threading.active_count() <= before + 4
    assert len(done) == 300
    assert time.monotonic() - begun < 10


async def until(condition, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
