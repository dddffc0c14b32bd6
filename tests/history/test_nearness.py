"""Of several paths that share as much with a request, the one it was made from is the nearest."""

from typing import Any

import pytest

from sessions_app.history.matchers.registry import BUILT_IN_MATCHERS
from sessions_app.history.nearness import nearness
from tests.history.messages import assistant, user

STRICT = BUILT_IN_MATCHERS["strict"]
ASKED = user("a")


def calling(name: str, arguments: str, **more: Any) -> dict[str, Any]:
    called = {"id": name, "type": "function", "function": {"name": "f", "arguments": arguments}}
    return {"role": "assistant", "content": "x", "tool_calls": [called], **more}


def test_more_messages_that_are_the_same_are_nearer_than_anything_else() -> None:
    request = [ASKED, assistant("b"), user("c")]
    assert nearness([ASKED, assistant("b"), user("d")], request, STRICT) > nearness(
        [ASKED, assistant("B"), user("c")], request, STRICT
    )


@pytest.mark.parametrize("also", [{}, {"content": "y"}, {"content": None, "reasoning_content": None}])
def test_a_respelled_reply_is_nearest_to_the_one_whose_call_ids_it_has(also: dict[str, Any]) -> None:
    first = calling("call_1", '{"a": 1}', reasoning_content="r")
    again = calling("call_2", '{"a":1}')
    request = [ASKED, {**calling("call_1", '{"a":1}', reasoning_content="r"), **also}]
    assert nearness([ASKED, first], request, STRICT) > nearness([ASKED, again], request, STRICT)


def test_without_calls_the_parts_decide_and_an_absent_one_is_an_empty_one() -> None:
    request = [ASKED, assistant("b"), user("c")]
    reasoned = [ASKED, assistant("b", reasoning_content="r")]
    assert nearness(reasoned, request, STRICT) == (1, False, 3)
    assert nearness([ASKED, assistant("d", reasoning_content="")], request, STRICT) == (1, False, 3)


@pytest.mark.parametrize("calls", [1, {"a": 1}, [1], [{"id": None}], [{"id": 3}], None])
def test_calls_of_any_shape_are_read(calls: Any) -> None:
    odd = {"role": "assistant", "content": "x", "tool_calls": calls}
    assert nearness([odd], [{**odd, "content": "y"}], STRICT) == (0, False, 3)


def test_a_path_that_is_repeated_in_full_has_no_pair_that_differs() -> None:
    assert nearness([ASKED], [ASKED, user("b")], STRICT) == (1, False, 0)
