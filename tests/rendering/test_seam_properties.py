"""Where a fresh render differs on purpose, or tokenizers mark words, or stop tokens open the next message."""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.rendering.protocol import Ids, Message, Renderer
from tests.rendering.support import family, healing_renderer, ids_of_pieces, plain
from tests.rendering.test_properties import TOOLS, said, texts, turns
from tests.rendering.test_word_marker import BRACKETS, KINDS, PROSE, tokenizer

relaxed = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
MARKS = ("", "<think>", "<|im_end|>\n", "</tool_call>", "<|im_start|>user\n")


def continued(renderer: Renderer, served: Ids, turn: Message, new: list[Message], tools: Any = None) -> Ids:
    """The next prompt; what was served stays but for the boundary tokens that the renderer may drop."""
    extension = renderer.extend(served, turn, new, tools)
    kept = served[: served.size - extension.trim]
    assert extension.trim <= renderer.max_trim_tokens
    return np.concatenate([kept, extension.ids])


@pytest.mark.parametrize("name", ["strip_think", "grouped_tools"])
@relaxed
@given(data=st.data())
def test_served_reasoning_stays_and_what_follows_is_the_templates(name: str, data: st.DataObject) -> None:
    renderer = healing_renderer(name)
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = renderer.render(history, TOOLS)
    for turn, new in data.draw(st.lists(turns(True), min_size=1, max_size=4)):
        text = said(renderer, history[-1:], turn, "<|im_end|>", None)
        cuts = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=4))
        served = np.concatenate([served, ids_of_pieces(renderer, text, cuts)])
        prompt = continued(renderer, served, turn, new, TOOLS)
        assert prompt[: served.size].tolist() == served.tolist()
        history = [*history, turn, *new]
        fresh = renderer.decode(renderer.render(history, TOOLS))
        assert fresh.endswith(renderer.decode(prompt[served.size :]))
        served = prompt


@relaxed
@given(data=st.data())
def test_a_family_whose_stop_opens_the_next_message_spells_a_fresh_render(data: st.DataObject) -> None:
    renderer = family("glm47", "glmish.jinja")
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = renderer.render(history, None)
    for content, question in data.draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=4)):
        turn: Message = {"role": "assistant", "content": content}
        text = said(renderer, history, turn, "", None)
        stop = data.draw(st.sampled_from(["", "<|user|>", "<|observation|>"]))
        served = np.concatenate([served, renderer.encode(text + stop)])
        history = [*history, turn, {"role": "user", "content": question}]
        served = continued(renderer, served, turn, history[-1:])
        assert renderer.decode(served) == renderer.decode(renderer.render(history, None))


words = st.lists(st.sampled_from(["hello", "there", "how", "you", "xyz", ":", "."]), min_size=1, max_size=4)


@pytest.mark.parametrize("template", [BRACKETS, PROSE])
@pytest.mark.parametrize("kind", KINDS)
@relaxed
@given(data=st.data())
def test_no_blank_is_added_or_lost_by_word_marks(kind: str, template: str, data: st.DataObject) -> None:
    renderer = plain(template, tokenizer(kind))
    close = " </s>" if template is BRACKETS else "</s>"
    history: list[Message] = [{"role": "user", "content": " ".join(data.draw(words))}]
    served = renderer.render(history, None)
    for said_words, asked in data.draw(st.lists(st.tuples(words, words), min_size=1, max_size=3)):
        turn: Message = {"role": "assistant", "content": " ".join(said_words)}
        spoken = renderer.tokenizer.encode_after("a", f" {turn['content']}{close}")
        history = [*history, turn, {"role": "user", "content": " ".join(asked)}]
        served = continued(renderer, np.concatenate([served, spoken]), turn, history[-1:])
        assert renderer.decode(served) == renderer.decode(renderer.render(history, None))


@relaxed
@given(data=st.data())
def test_marks_in_what_clients_write_are_spelled_as_in_a_fresh_render(data: st.DataObject) -> None:
    renderer = healing_renderer("plain")
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = renderer.render(history, None)
    for content, asked in data.draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=3)):
        turn: Message = {"role": "assistant", "content": content}
        mark = data.draw(st.sampled_from(MARKS))
        new: list[Message] = [{"role": "user", "content": mark + asked + mark}]
        served = np.concatenate([served, renderer.encode(f"{content}<|im_end|>")])
        served = continued(renderer, served, turn, new)
        history = [*history, turn, *new]
        assert renderer.decode(served) == renderer.decode(renderer.render(history, None))
