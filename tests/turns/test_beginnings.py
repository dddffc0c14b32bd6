"""What is remembered of a request's beginning changes no answer, and saves the work of reading it again."""

import copy
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.history.chain import prefix_keys
from sessions_app.history.matchers.base import Message, MessageMatcher
from sessions_app.history.matchers.registry import resolve_matcher
from sessions_app.turns import beginnings
from sessions_app.turns.beginnings import Beginnings, spelling_digest

SESSION, OTHER = UUID(int=1), UUID(int=2)
STRICT, EXACT = resolve_matcher("strict"), resolve_matcher("exact")

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([1.0, 0.0, -0.0, float("nan")])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=4,
)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": values}), max_size=6
)


class Counting:
    """A matcher that counts the messages it reads."""

    name = "counting"

    def __init__(self) -> None:
        self.read = 0

    def matches(self, stored: Message, replayed: Message) -> bool:
        return STRICT.matches(stored, replayed)

    def key(self, message: Message) -> bytes | None:
        self.read += 1
        return STRICT.key(message)


def says(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def check(known: Beginnings, session: UUID, told: list[dict[str, Any]], matcher: MessageMatcher) -> None:
    read = known.read(session, told, matcher)
    assert list(read.history.keys) == prefix_keys(matcher, told)
    assert read.spelling is not None
    for count in range(1, len(told) + 1):
        assert read.spelling.of_leading(told, count) == spelling_digest(told[:count])
    assert read.spelling.digest == spelling_digest(told)


@given(st.lists(st.tuples(messages, st.integers(0, 6), st.booleans(), st.booleans()), max_size=6))
def test_every_answer_is_as_without_memory(requests: Any) -> None:
    known = Beginnings()
    last: list[dict[str, Any]] = []
    for new, kept, other_session, other_matcher in requests:
        told = [*copy.deepcopy(last[:kept]), *new]
        check(known, OTHER if other_session else SESSION, told, EXACT if other_matcher else STRICT)
        last = told


def test_only_new_messages_are_read() -> None:
    known, matcher = Beginnings(), Counting()
    told = [says(str(n)) for n in range(50)]
    for count in (10, 12, 12, 50):
        known.read(SESSION, told[:count], matcher)
    assert matcher.read == 50


def test_an_edited_message_is_read_anew() -> None:
    known, matcher = Beginnings(), Counting()
    known.read(SESSION, [says("a"), says("b"), says("c")], matcher)
    read = known.read(SESSION, [says("a"), says("B"), says("c"), says("d")], matcher)
    assert matcher.read == 7
    assert list(read.history.keys) == prefix_keys(STRICT, [says("a"), says("B"), says("c"), says("d")])


def test_types_that_python_takes_for_equal_are_kept_apart() -> None:
    known = Beginnings()
    check(known, SESSION, [{"role": "user", "content": 1}], EXACT)
    check(known, SESSION, [{"role": "user", "content": True}, says("b")], EXACT)
    check(known, SESSION, [{"role": "user", "content": 1.0}, says("b"), says("c")], EXACT)
    check(known, SESSION, [{"role": "user", "content": None}], EXACT)
    check(known, SESSION, [{"role": "user", "content": float("nan")}, says("b")], EXACT)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beginnings, "_KEPT_KEYS", 100)
    known, matcher = Beginnings(), Counting()
    for number in range(50):
        known.read(UUID(int=number), [says(str(n)) for n in range(10)], matcher)
    assert len(known._known) == 10
    assert known._keys == 100
    matcher.read = 0
    known.read(UUID(int=49), [says(str(n)) for n in range(11)], matcher)
    known.read(UUID(int=0), [says(str(n)) for n in range(11)], matcher)
    assert matcher.read == 1 + 11


def test_messages_too_deep_to_be_written_are_still_compared() -> None:
    deep: Any = "x"
    for _ in range(3000):
        deep = [deep]
    read = Beginnings().read(SESSION, [{"role": "user", "content": deep}], STRICT)
    assert read.spelling is None
    assert len(read.history.keys) == 1
