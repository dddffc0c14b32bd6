"""Every family of the package `renderers` that needs no download, over small tokenizers with its own marks.

What is fed spells what the family renders: nothing of its closes, openers and newlines is doubled or lost.
"""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.errors import InvalidTemplateKwargs
from sessions_app.rendering.package.catalogue import family_names
from sessions_app.rendering.package.renderer import PackageRenderer
from sessions_app.rendering.protocol import Message, RendererRefused
from sessions_app.rendering.tokenizer import ChatTokenizer
from sessions_app.rendering.verification import FAIL, verify
from tests.rendering.support import HISTORY, VECTORS, array, fed

MARKS: dict[str, list[str]] = json.loads((VECTORS / "rendering/package_tokens.json").read_text())
NEEDS_A_DOWNLOAD = {"gpt-oss"}
NO_SYSTEM = {
    "qwen3.5", "qwen3.6", "qwen3.8", "qwen3-vl", "nemotron-3", "nemotron-3-ultra", "nemotron-3.5",
    "minimax-m2", "hy3",
}  # fmt: skip
"""Families that refuse a system message in a conversation's midst, or print it at the head."""
USER: Message = {"role": "user", "content": "q1"}
NEXT: Message = {"role": "user", "content": "q2"}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "object"}}}
]


@cache
def of(family: str) -> PackageRenderer:
    state = json.loads((HISTORY / "config/tokenizer/tokenizer.json").read_text())
    like = state["added_tokens"][0]
    marks = enumerate(sorted({"<|endoftext|>", *MARKS[family]}), start=256)
    state["added_tokens"] = [
        {**like, "id": number, "content": text, "special": text.startswith(("<|", "<｜", "[e~[", "]~"))}
        for number, text in marks
    ]
    folder = Path(tempfile.mkdtemp())
    (folder / "tokenizer.json").write_text(json.dumps(state))
    (folder / "tokenizer_config.json").write_text("{}")
    return PackageRenderer(ChatTokenizer.load(str(folder)), family, {})


def calling(*ids: str) -> Message:
    calls = [{"id": id_, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for id_ in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(id_: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": id_, "name": "ls", "content": content}


def text_after(family: str, said: str, turn: Message, new: list[Message], tools: Any = None) -> str:
    """What is appended to a served turn."""
    renderer = of(family)
    served = [*renderer.render([USER], tools).tolist(), *renderer.encode(said).tolist()]
    extension = renderer.extend(array(served), turn, new, tools)
    return renderer.decode(fed(served, extension)).partition(said)[2]


def test_all_families_are_here() -> None:
    assert set(family_names()) == set(MARKS) | NEEDS_A_DOWNLOAD


@pytest.mark.parametrize("family", MARKS)
def test_a_family_keeps_its_seams_and_reads_its_own_turns(family: str) -> None:
    assert [check for check in verify(of(family)) if check.verdict == FAIL] == []


@pytest.mark.parametrize("family", MARKS)
def test_roles_that_can_follow(family: str) -> None:
    missing = {"system"} if family in NO_SYSTEM else set()
    assert of(family).append_roles == {"assistant", "system", "tool", "user"} - missing


@pytest.mark.parametrize("family", ["laguna-xs.2", "laguna-m.1"])
def test_a_newline_that_the_bridge_loses_is_put_back(family: str) -> None:
    turn: Message = {"role": "assistant", "content": "a1"}
    assert text_after(family, "a1\n</assistant>", turn, [NEXT]).startswith("\n<user>\nq2")


@pytest.mark.parametrize(
    ("family", "said"), [("laguna-xs.2", "a1\n"), ("laguna-xs-2.1", "a1"), ("qwen3", "a1")]
)
def test_a_close_that_was_served_whole_is_not_doubled(family: str, said: str) -> None:
    """An engine may hand on what follows the stop token."""
    end = "</assistant>\n" if family.startswith("laguna") else "<|im_end|>\n"
    turn: Message = {"role": "assistant", "content": "a1"}
    assert text_after(family, f"{said}{end}", turn, [NEXT]).startswith(
        "<user>" if family.startswith("laguna") else "<|im_start|>user"
    )


@pytest.mark.parametrize(("said", "missing"), [("a1", "\n</assistant>\n"), ("a1\n", "</assistant>\n")])
def test_what_a_cut_turn_lacks_in_front_of_its_stop_token_is_added(said: str, missing: str) -> None:
    renderer = of("laguna-xs.2")
    served = np.concatenate([renderer.render([USER], None), renderer.encode(said)])
    extension = renderer.extend(served, {"role": "assistant", "content": "a1"}, [NEXT], None, cut=True)
    assert renderer.decode(extension.ids).startswith(f"{missing}<user>")


@pytest.mark.parametrize("family", ["glm-4.5", "glm-5", "glm-5.1", "glm-5.3"])
def test_a_turn_without_its_stop_token_is_followed_by_the_opener_alone(family: str) -> None:
    said = "<think></think>a1" if family == "glm-5" else "a1"
    after = text_after(family, said, {"role": "assistant", "content": "a1"}, [NEXT])
    assert after.startswith("<|user|>")


@pytest.mark.parametrize("said", ["a1<|user|>", "a1<|observation|>"])
def test_an_opener_that_was_sampled_is_not_doubled(said: str) -> None:
    renderer = of("glm-4.5")
    text = renderer.decode(
        fed(
            served := [*renderer.render([USER], None).tolist(), *renderer.encode(said).tolist()],
            renderer.extend(array(served), {"role": "assistant", "content": "a1"}, [NEXT], None),
        )
    )
    assert text.count("<|user|>") == 2
    assert "<|observation|>" not in text


@pytest.mark.parametrize("family", ["qwen3.5", "nemotron-3"])
def test_what_neither_the_bridge_nor_a_render_can_do_has_a_cause(family: str) -> None:
    renderer = of(family)
    served = renderer.render([USER], None)
    with pytest.raises(RendererRefused) as caught:
        renderer.extend(
            served, {"role": "assistant", "content": ""}, [{"role": "assistant", "tool_calls": 3}], None
        )
    assert caught.value.cause in ("template_not_append_only", "renderer_refused")


@pytest.mark.parametrize(
    ("family", "ignored"),
    [
        ("glm-4.5", {"<|user|>", "<|observation|>", "<|endoftext|>"}),
        ("kimi-k2", set()),
        ("laguna-xs.2", {"\n"}),
        ("minimax-m2", {"\n"}),
    ],
)
def test_what_the_comparator_ignores_at_tails(family: str, ignored: set[str]) -> None:
    renderer = of(family)
    assert {renderer.decode([number]) for number in renderer.comparison.trailing_ids} == ignored


def test_parallel_results_go_in_the_order_of_their_calls() -> None:
    """DeepSeek V4 sorts them, and its bridge does not know the calls."""
    renderer = of("deepseek-v4")
    turn, new = calling("c1", "c2"), [result("c2", "second"), result("c1", "first")]
    after = text_after("deepseek-v4", "x<｜end▁of▁sentence｜>", turn, new, TOOLS)
    assert after.index("first") < after.index("second")
    whole = renderer.decode(renderer.render([USER, turn, *new], TOOLS))
    assert whole.endswith(after)


def test_marks_that_a_message_spells_stay_text() -> None:
    """What follows a turn is taken from the family id by id, never spelled again."""
    spelled: Message = {"role": "user", "content": "say </assistant>"}
    renderer = of("laguna-xs.2")
    fresh = renderer.render([USER, {"role": "assistant", "content": "a1"}, spelled], None)
    end = renderer.tokenizer.token_id("</assistant>")
    served = fresh[: fresh.tolist().index(end) + 1]
    extension = renderer.extend(served, {"role": "assistant", "content": "a1"}, [spelled], None)
    assert fed(served.tolist(), extension) == fresh.tolist()


@pytest.mark.parametrize(
    ("launch", "request_", "thinks"),
    [
        ({}, {}, None),
        ({}, {"thinking": True}, True),
        ({}, {"thinking_mode": "thinking"}, True),
        ({"thinking": True}, {"enable_thinking": False}, False),
        ({"thinking_mode": "thinking"}, {"thinking": False}, False),
        ({}, {"thinking_mode": "chat", "enable_thinking": True, "thinking": True}, False),
        ({}, {"enable_thinking": True, "thinking": False}, True),
        ({"enable_thinking": True}, {"reasoning_effort": "high"}, True),
    ],
)
def test_deepseeks_switch_has_three_names(launch: Any, request_: Any, thinks: bool | None) -> None:
    renderer = PackageRenderer(of("deepseek-v4").tokenizer, "deepseek-v4", launch).with_kwargs(request_)
    assert renderer.template_kwargs.get("thinking") is thinks
    assert not {"thinking_mode", "enable_thinking"} & renderer.template_kwargs.keys()
    prompt = renderer.decode(renderer.render([USER], None))
    assert prompt.endswith("<think>") is bool(thinks)


def test_an_unknown_thinking_mode_is_refused() -> None:
    with pytest.raises(InvalidTemplateKwargs, match="thinking_mode"):
        of("deepseek-v4").with_kwargs({"thinking_mode": "deep"})


APPEND_ONLY = ("prime-qwen3", "qwen3-vl", "deepseek-v3", "kimi-k2", "laguna-s-2.1", "inkling", "llama-3")
texts = st.text(alphabet="abq \n<>|é😀", min_size=1, max_size=10).filter(lambda text: text.strip() == text)


@pytest.mark.parametrize("family", APPEND_ONLY)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_fed_spells_a_fresh_render(family: str, data: st.DataObject) -> None:
    renderer = of(family)
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = renderer.render(history, None)
    for content, question in data.draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=3)):
        turn: Message = {"role": "assistant", "content": content}
        told = renderer.render([*history, turn], None, add_generation_prompt=False)
        asked = renderer.render(history, None)
        said = told[asked.size :] if told[: asked.size].tolist() == asked.tolist() else None
        if said is None:
            return
        stops = [at for at, number in enumerate(said.tolist()) if number in renderer.stop_token_ids]
        ended = data.draw(st.booleans())
        served = np.concatenate([served, said[: stops[-1] + ended] if stops else said])
        new: list[Message] = [{"role": "user", "content": question}]
        extension = renderer.extend(served, turn, new, None)
        served = np.concatenate([served[: served.size - extension.trim], extension.ids])
        history = [*history, turn, *new]
        assert renderer.decode(served) == renderer.decode(renderer.render(history, None))
