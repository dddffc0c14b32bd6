"""Which engine serves a session: kept, least loaded, left when dead. Pure bookkeeping, no network."""

import uuid
from collections import Counter

import pytest

from sessions_app.backends.routing import EnginePool

URLS = ("http://a", "http://b", "http://c")


def url_of(pool: EnginePool, session: str, preferred: str = "", avoid: frozenset[str] = frozenset()) -> str:
    engine = pool.choose(session, preferred, avoid)
    assert engine is not None
    return engine.url


def test_a_session_keeps_its_engine_whatever_the_load():
    pool = EnginePool(URLS)
    first = pool.choose("s")
    assert first is not None
    with pool.occupied(first), pool.occupied(first), pool.occupied(first):
        assert pool.choose("s") is first
    assert first.in_flight == 0


def test_the_stored_engine_wins_over_what_this_process_remembers():
    pool = EnginePool(URLS)
    assert {url_of(pool, "s", preferred=url) for url in URLS} == set(URLS)


def test_new_sessions_go_to_the_least_loaded_engine():
    pool = EnginePool(URLS)
    a, b, _ = pool.engines
    with pool.occupied(a), pool.occupied(b):
        assert {url_of(pool, str(number)) for number in range(20)} == {"http://c"}


def test_idle_processes_agree_and_spread_evenly():
    sessions = [uuid.uuid4().hex for _ in range(3000)]
    one, other = EnginePool(URLS), EnginePool(URLS)
    chosen = [url_of(one, session) for session in sessions]
    assert chosen == [url_of(other, session) for session in sessions]
    assert min(Counter(chosen).values()) > 800


def test_a_session_leaves_a_dead_engine_and_stays_where_it_went():
    pool = EnginePool(URLS)
    home = pool.choose("s")
    assert home is not None
    home.refused()
    moved = url_of(pool, "s", preferred=home.url)
    assert moved != home.url
    home.report(healthy=True)
    assert url_of(pool, "s") == moved


def test_one_failed_check_is_forgiven_two_are_not():
    engine = EnginePool(URLS).engines[0]
    engine.report(healthy=False)
    assert engine.healthy
    engine.report(healthy=True)
    engine.report(healthy=False)
    assert engine.healthy
    engine.report(healthy=False)
    assert not engine.healthy
    engine.report(healthy=True)
    assert engine.healthy


def test_when_all_are_down_one_is_tried_all_the_same():
    pool = EnginePool(URLS)
    for engine in pool.engines:
        engine.refused()
    assert url_of(pool, "s") in URLS
    assert pool.choose("s", avoid=frozenset(URLS)) is None


def test_urls_are_cleaned_and_unique():
    assert [engine.url for engine in EnginePool(("http://a/", "http://a/", "http://b")).engines] == [
        "http://a/".rstrip("/"),
        "http://b",
    ]
    with pytest.raises(ValueError, match="at least one"):
        EnginePool(())
