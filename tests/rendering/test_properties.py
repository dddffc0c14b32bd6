"""Random conversations, random legal token splits: what is fed spells exactly what a fresh render would
spell."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.rendering.factory import load_renderer
from sessions_app.rendering.protocol import Ids, Message, Renderer
from tests.rendering.support import array, family, healing_renderer, ids_of_pieces

TEXT_CLOSE = {
    "plain": "<|im_end|>",
    "nl_glue": "<|im_end|>",
    "asym_close": "<|im_end|>",
    "grouped_tools": "<|im_end|>",
}
CALL_CLOSE = {**TEXT_CLOSE, "asym_close": "<|call_end|>"}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "ls", "description": "", "parameters": {"type": "object"}}}
]

texts = st.text(alphabet='theino,:{}" é😀ab\n', min_size=1, max_size=12).filter(
    lambda text: text.strip() == text
)
arguments = st.dictionaries(
    st.sampled_from(["path", "n"]), st.one_of(texts, st.integers(), st.none()), max_size=2
)


@st.composite
def turns(draw: st.DrawFn, reasoning: bool) -> tuple[Message, list[Message]]:
    """A generated message and what the client adds after it."""
    message: dict[str, Any] = {"role": "assistant", "content": draw(texts)}
    if reasoning and draw(st.booleans()):
        message["reasoning_content"] = draw(texts)
    calls = draw(st.lists(arguments, max_size=2))
    new: list[Message] = [{"role": "user", "content": draw(texts)}]
    if calls:
        message["tool_calls"] = [
            {"id": f"c{i}", "type": "function", "function": {"name": "ls", "arguments": json.dumps(call)}}
            for i, call in enumerate(calls)
        ]
        results: list[Message] = [
            {"role": "tool", "tool_call_id": f"c{i}", "content": draw(texts)} for i in range(len(calls))
        ]
        new = results + (new if draw(st.booleans()) else [])
    return message, new


def sampled(renderer: Renderer, text: str, cuts: Sequence[int]) -> Ids:
    """Ids that spell a text, split wherever the cuts fall: what a model may sample instead of the
    canonical ids."""
    return ids_of_pieces(renderer, text, cuts)


def said(renderer: Renderer, history: list[Message], turn: Message, close: str, tools: Any) -> str:
    """What the model has to say to mean this turn, its stop token included."""
    asked = renderer.decode(renderer.render(history, tools))
    told = renderer.decode(renderer.render([*history, turn], tools, add_generation_prompt=False))
    assert told.startswith(asked)
    return told[len(asked) :].removesuffix("\n") if close else told[len(asked) :]


def hold(renderer: Renderer, closes: tuple[str, str], data: st.DataObject, reasoning: bool) -> None:
    tools = data.draw(st.sampled_from([None, TOOLS]))
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = renderer.render(history, tools)
    for turn, new in data.draw(st.lists(turns(reasoning), min_size=1, max_size=4)):
        close = closes[1] if turn.get("tool_calls") else closes[0]
        text = said(renderer, history, turn, close, tools)
        if close:
            assert text.endswith(close)
            text = text if data.draw(st.booleans()) else text.removesuffix(close)
        cuts = data.draw(st.lists(st.integers(0, max(0, len(text) - 1)), max_size=6))
        served = np.concatenate([served, sampled(renderer, text, cuts)])
        extension = renderer.extend(served, turn, new, tools)
        history = [*history, turn, *new]
        fed = np.concatenate([served[: served.size - extension.trim], extension.ids])
        assert renderer.decode(fed) == renderer.decode(renderer.render(history, tools))
        assert fed[: served.size - extension.trim].tolist() == served[: served.size - extension.trim].tolist()
        assert extension.trim <= renderer.max_trim_tokens
        served = fed


relaxed = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", ["plain", "nl_glue", "asym_close", "grouped_tools"])
@relaxed
@given(data=st.data())
def test_a_template_spells_a_fresh_render(name: str, data: st.DataObject) -> None:
    hold(
        healing_renderer(name),
        (TEXT_CLOSE[name], CALL_CLOSE[name]),
        data,
        name in ("plain", "nl_glue", "asym_close"),
    )


@relaxed
@given(data=st.data())
def test_a_template_without_closes_spells_a_fresh_render(data: st.DataObject) -> None:
    hold(healing_renderer("role_delim"), ("", ""), data, reasoning=True)


@relaxed
@given(data=st.data())
def test_a_family_spells_a_fresh_render_of_turns_that_ended(data: st.DataObject) -> None:
    renderer = family("qwen3")
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = renderer.render(history, None)
    for turn, new in data.draw(st.lists(turns(True), min_size=1, max_size=4)):
        text = said(renderer, history, turn, "<|im_end|>", None)
        served = np.concatenate([served, sampled(renderer, text, [len(text) // 2])])
        served = np.concatenate([served, renderer.extend(served, turn, new, None).ids])
        history = [*history, turn, *new]
        assert renderer.decode(served) == renderer.decode(renderer.render(history, None))


@relaxed
@given(data=st.data())
def test_the_demo_tokenizer_spells_a_fresh_render(data: st.DataObject) -> None:
    renderer = load_renderer(
        "auto", model="", chat_template=None, kwargs={}, tool_parser="qwen3", reasoning_parser="think"
    )
    hold(renderer, ("<|im_end|>", "<|im_end|>"), data, reasoning=True)


@relaxed
@given(data=st.data())
def test_what_a_turn_renders_is_parsed_back(data: st.DataObject) -> None:
    renderer = healing_renderer("plain")
    turn, _ = data.draw(turns(True))
    text = said(renderer, [{"role": "user", "content": "q"}], turn, "<|im_end|>", None)
    cuts = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=6))
    parsed = renderer.parse(array(sampled(renderer, text, cuts).tolist()), None)
    assert not parsed.ill_formed
    assert parsed.message["content"] == turn["content"]
    assert parsed.message.get("reasoning_content") == turn.get("reasoning_content")
    wanted = [json.loads(call["function"]["arguments"]) for call in turn.get("tool_calls", [])]
    found = [json.loads(call["function"]["arguments"]) for call in parsed.message.get("tool_calls", [])]
    assert found == wanted
