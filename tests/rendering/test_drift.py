"""Drift between serving and a fresh render: its classes, the first id that differs, and what is no drift."""

from typing import Any

import numpy as np
import pytest

from sessions_app.rendering.drift import Break, Drift, classify, drift
from sessions_app.rendering.protocol import Message, Renderer
from tests.rendering.support import family, healing_renderer, ids_of_pieces

ASK: Message = {"role": "user", "content": "q1"}
TEXT: Message = {"role": "assistant", "content": "the end"}
WHY: Message = {**TEXT, "reasoning_content": "why"}
NEXT: Message = {"role": "user", "content": "q2"}


class Letters:
    """Ids below 10 are special; 10 is "a", 11 is "b", 12 is "ab"."""

    special_ids = frozenset(range(10))
    _texts = {10: "a", 11: "b", 12: "ab"}

    def text(self, ids):
        return "".join(self._texts.get(token, "") for token in ids)


def test_a_continuation_is_no_break():
    assert classify([1, 10, 2], [1, 10], Letters()) is None
    assert classify([1], [], Letters()) is None


@pytest.mark.parametrize(
    ("ids", "context", "expected"),
    [
        ([1, 10], [2, 10], Break(True, False, False, 0)),
        ([1, 12, 2], [1, 10, 11], Break(False, True, False, 1)),
        ([1, 11], [1, 10], Break(False, False, True, 1)),
        ([2, 12], [1, 10, 11], Break(True, True, False, 0)),
        ([10], [1, 10], Break(False, False, False, 0)),
        ([10], [10, 11], Break(False, False, True, 1)),
    ],
)
def test_classes_and_the_first_token_that_differs(ids, context, expected):
    assert classify(ids, context, Letters()) == expected


def audited(renderer: Renderer, said: str, turn: Message, cuts: tuple[int, ...] = ()) -> Drift:
    served = np.concatenate([renderer.render([ASK], None), ids_of_pieces(renderer, said, cuts)])
    return drift(renderer, [ASK, turn], None, served)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("plain", "the end<|im_end|>"),
        ("plain", "the end"),
        ("plain", "the end<|im_end|>\n"),
        ("nl_glue", "the end<|im_end|>"),
        ("role_delim", "the end"),
        ("role_delim", "the end<|user|>"),
        ("role_delim", "the end<|observation|>"),
    ],
)
def test_how_much_of_the_close_was_served_is_no_drift(name: str, said: str) -> None:
    found = audited(healing_renderer(name), said, TEXT)
    assert (found.mismatches, found.broken) == ((), None)


def test_a_prompt_that_ends_with_an_opener_is_not_taken_for_a_close() -> None:
    found = audited(healing_renderer("role_delim"), "x", {"role": "assistant", "content": ""})
    assert found.broken is not None
    assert found.broken.others_mismatch


def test_another_split_is_a_retokenisation_at_its_first_id() -> None:
    renderer = healing_renderer("plain")
    found = audited(renderer, "the end<|im_end|>", TEXT, cuts=(1, 2))
    start = renderer.render([ASK], None).size
    assert found.mismatches == ()
    assert found.broken == Break(False, True, False, start)
    assert found.served_tokens == found.fresh_tokens - 1 + 2


def test_another_text_is_the_assistants() -> None:
    found = audited(family("qwen3"), "another<|im_end|>", TEXT)
    assert [mismatch.type for mismatch in found.mismatches] == ["assistant_text"]
    assert found.broken is not None
    assert (found.broken.template_mismatch, found.broken.others_mismatch) == (False, True)


def test_a_lost_special_token_is_told_by_both_views() -> None:
    renderer = family("qwen3")
    served = renderer.render([ASK, TEXT, NEXT, TEXT], None, add_generation_prompt=False)
    end = renderer.tokenizer.token_id("<|im_end|>")
    first = int(np.flatnonzero(served == end)[0])
    found = drift(renderer, [ASK, TEXT, NEXT, TEXT], None, np.delete(served, first))
    assert [mismatch.type for mismatch in found.mismatches] == ["special_token_count"]
    assert found.broken is not None
    assert found.broken.template_mismatch
    assert found.broken.position == first


def test_reasoning_that_the_template_drops_is_found_where_it_was_served() -> None:
    renderer = healing_renderer("strip_think")
    prompt = renderer.render([ASK], None)
    said = ids_of_pieces(renderer, "<think>\nwhy\n</think>\n\nthe end<|im_end|>", ())
    served = np.concatenate([prompt, said])
    extension = renderer.extend(served, WHY, [NEXT], None)
    last = ids_of_pieces(renderer, "the end<|im_end|>", ())
    found = drift(renderer, [ASK, WHY, NEXT, TEXT], None, np.concatenate([served, extension.ids, last]))
    assert [mismatch.type for mismatch in found.mismatches] == ["assistant_text"]
    assert found.broken is not None
    assert (found.broken.others_mismatch, found.broken.position) == (True, prompt.size)


def test_tools_belong_to_the_render() -> None:
    renderer = healing_renderer("plain")
    tools: list[Any] = [{"type": "function", "function": {"name": "ls", "description": "", "parameters": {}}}]
    said = ids_of_pieces(renderer, "the end<|im_end|>", ())
    served = np.concatenate([renderer.render([ASK], tools), said])
    assert drift(renderer, [ASK, TEXT], tools, served).broken is None
    assert drift(renderer, [ASK, TEXT], None, served).broken is not None
