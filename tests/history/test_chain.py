"""Chained keys: one value for a whole path."""

from sessions_app.history.chain import EMPTY, chain, prefix_keys
from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from tests.history.messages import assistant, user

STRICT = BUILT_IN_MATCHERS["strict"]
PATH = [user("a"), assistant("b"), user("c")]


def test_each_prefix_has_the_key_of_the_path_it_is():
    keys = prefix_keys(STRICT, PATH)
    assert len(keys) == 3
    assert all(len(key) == 16 for key in keys)
    assert [prefix_keys(STRICT, PATH[:length])[-1] for length in (1, 2, 3)] == keys


def test_a_chain_can_be_continued_from_any_prefix():
    keys = prefix_keys(STRICT, PATH)
    assert keys[0] == chain(EMPTY, STRICT.key(PATH[0]))
    assert keys[2] == chain(keys[1], STRICT.key(PATH[2]))


def test_order_counts():
    assert prefix_keys(STRICT, [user("a"), user("b")])[-1] != prefix_keys(STRICT, [user("b"), user("a")])[-1]


def test_from_the_first_message_without_a_key_on_there_is_none():
    keys = prefix_keys(STRICT, [user("a"), user(float("nan")), user("c")])
    assert keys[0] is not None
    assert keys[1:] == [None, None]


def test_no_messages_have_no_keys():
    assert prefix_keys(STRICT, []) == []
