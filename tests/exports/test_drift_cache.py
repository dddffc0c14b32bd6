"""The cache of drift: by renderer, session and node, and bounded by the text that it holds."""

from uuid import uuid4

from trainer_export.forests.drift import DriftCache, Key

SESSION = uuid4()


def key(seq: int, renderer: str = "a") -> Key:
    return (renderer, SESSION, seq)


def test_nothing_computed_is_not_the_same_as_no_drift() -> None:
    cache = DriftCache()
    assert cache.get(key(0)) is None
    cache.put(key(0), None)
    cache.put(key(1), [])
    assert (cache.get(key(0)), cache.get(key(1))) == ((None,), ([],))


def test_another_renderer_drifts_otherwise() -> None:
    cache = DriftCache()
    cache.put(key(0), [{"type": "assistant_text"}])
    assert cache.get(key(0, "b")) is None


def test_long_texts_push_out_what_was_not_asked_for_lately() -> None:
    cache = DriftCache(most=2_000)
    for seq in range(3):
        cache.put(key(seq), [{"expected_text": "x" * 400, "segment_index": seq}])
    assert cache.get(key(0)) is not None
    cache.put(key(3), [{"expected_text": "x" * 400}])
    assert [cache.get(key(seq)) is not None for seq in range(4)] == [True, False, True, True]
    cache.put(key(4), [{"expected_text": "x" * 5_000}])
    assert [cache.get(key(seq)) is not None for seq in range(5)] == [False] * 5
