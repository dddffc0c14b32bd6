"""Work grows with the new messages, not with the history: counted in renders and tokenised characters."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.protocol import Ids, Message
from sessions_app.rendering.tokenizer import ChatTokenizer
from tests.rendering.support import TEMPLATES, array, family, plain

TURN: Message = {"role": "assistant", "content": "a"}
NEW: list[Message] = [{"role": "user", "content": "next question"}]


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts template renders with their messages, and characters given to the tokenizer."""
    counted: Counter[str] = Counter()
    render, encode = ChatTemplate.render, ChatTokenizer.encode

    def counting_render(self: ChatTemplate, messages: Any, *args: Any, **kwargs: Any) -> str:
        counted.update(renders=1, messages=len(messages))
        return render(self, messages, *args, **kwargs)

    def counting_encode(self: ChatTokenizer, text: str) -> Ids:
        counted.update(characters=len(text))
        return encode(self, text)

    monkeypatch.setattr(ChatTemplate, "render", counting_render)
    monkeypatch.setattr(ChatTokenizer, "encode", counting_encode)
    return counted


@pytest.mark.parametrize("make", [lambda: plain(TEMPLATES["plain"]), lambda: family("qwen3")])
def test_extending_costs_the_same_after_a_long_history(make: Any, work: Counter[str]) -> None:
    renderer = make()
    renderer.extend(array([1, 2, 3]), TURN, NEW, None)
    costs = []
    for length in (10, 100_000):
        work.clear()
        renderer.extend(np.zeros(length, dtype=np.int32), TURN, NEW, None)
        costs.append(dict(work))
    assert costs[0] == costs[1]
    assert costs[0]["renders"] <= 2
    assert costs[0]["characters"] < 400


def test_a_close_is_learned_once_whatever_the_ids_of_the_calls(work: Counter[str]) -> None:
    renderer = plain(TEMPLATES["plain"])
    for number in range(3):
        work.clear()
        call = {"id": f"c{number}", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        turn = {"role": "assistant", "content": "", "tool_calls": [call]}
        renderer.extend(
            array([1]), turn, [{"role": "tool", "content": "r", "tool_call_id": f"c{number}"}], None
        )
    assert work["renders"] == 1


def test_many_threads_share_a_renderer() -> None:
    renderer = plain(TEMPLATES["asym_close"])
    served = renderer.render([{"role": "user", "content": "q"}], None)
    expected = renderer.extend(served, TURN, NEW, None).ids.tolist()
    barrier = threading.Barrier(8)

    def one(number: int) -> bool:
        barrier.wait()
        found = []
        for turn in range(20):
            clone = renderer.with_kwargs({"x": (number + turn) % 5})
            names = [{"id": "c", "type": "function", "function": {"name": f"f{turn}", "arguments": "{}"}}]
            clone.extend(served, {**TURN, "tool_calls": names}, NEW, None)
            found.append(clone.extend(served, TURN, NEW, None).ids.tolist())
        return all(ids == expected for ids in found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(8)))
