"""`renderers:FAMILY` behind our protocol, with a small tokenizer that has the family's special tokens."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sessions_app.errors import InvalidTemplateKwargs, TemplateError
from sessions_app.rendering.package.renderer import PackageRenderer
from sessions_app.rendering.protocol import Message
from sessions_app.rendering.tokenizer import ChatTokenizer
from tests.rendering.support import HISTORY, array, fed

USER: Message = {"role": "user", "content": "q1"}
NEXT: Message = {"role": "user", "content": "q2"}
TOOLS = [
    {"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "object"}}}
]
CALL_TEXT = '<tool_call>\n{"name": "ls", "arguments": {"n": 1}}\n</tool_call>'


@cache
def qwen_tokenizer() -> ChatTokenizer:
    state = json.loads((HISTORY / "config/tokenizer/tokenizer.json").read_text())
    for text in ("<tool_response>", "</tool_response>", "[gMASK]", "<sop>", "<|begin_of_image|>"):
        known = state["added_tokens"]
        known.append({**known[-1], "id": known[-1]["id"] + 1, "content": text, "special": False})
    folder = Path(tempfile.mkdtemp())
    (folder / "tokenizer.json").write_text(json.dumps(state))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>"}))
    return ChatTokenizer.load(str(folder))


@cache
def qwen3() -> PackageRenderer:
    return PackageRenderer(qwen_tokenizer(), "qwen3", {})


def continued(said: str, new: list[Message], tools: Any = None) -> str:
    renderer = qwen3()
    served = [*renderer.render([USER], tools).tolist(), *renderer.tokenizer.encode(said).tolist()]
    extension = renderer.extend(array(served), {"role": "assistant", "content": said}, new, tools)
    prompt = fed(served, extension)
    assert prompt[: len(served)] == served
    return renderer.decode(prompt)


@pytest.mark.parametrize(
    "said", ["a1", "a1<|im_end|>", "a1<|im_end|>\n", "<think>\nw\n</think>\n\na1<|im_end|>"]
)
def test_a_turn_is_continued_with_its_ids_kept(said: str) -> None:
    close = "<|im_end|>\n"
    body = said.removesuffix("\n").removesuffix("<|im_end|>")
    expected = f"<|im_start|>assistant\n{body}{close}<|im_start|>user\nq2{close}<|im_start|>assistant\n"
    assert continued(said, [NEXT]).endswith(expected)


def test_what_closes_the_turn_is_the_glue() -> None:
    renderer = qwen3()
    served = [*renderer.render([USER], None).tolist(), *renderer.tokenizer.encode("a1").tolist()]
    extension = renderer.extend(array(served), {"role": "assistant", "content": "a1"}, [NEXT], None)
    assert renderer.decode(extension.glue) == "<|im_end|>\n"
    assert renderer.decode(extension.delta).startswith("<|im_start|>user")


def test_results_of_calls_share_a_block() -> None:
    results: list[Message] = [
        {"role": "tool", "content": name, "tool_call_id": name} for name in ("r1", "r2")
    ]
    text = continued(f"{CALL_TEXT}<|im_end|>", results, TOOLS)
    assert (
        "<|im_start|>user\n<tool_response>\nr1\n</tool_response>\n<tool_response>\nr2\n</tool_response>"
        in text
    )


@pytest.mark.parametrize(
    ("new", "told"),
    [
        ([], ""),
        (
            [{"role": "assistant", "content": "x"}],
            "<|im_start|>assistant\n<think>\n\n</think>\n\nx<|im_end|>\n",
        ),
    ],
)
def test_what_the_bridge_refuses_is_read_off_a_render(new: list[Message], told: str) -> None:
    assert continued("a1<|im_end|>", new).endswith(f"a1<|im_end|>\n{told}<|im_start|>assistant\n")


def test_a_last_turn_that_cannot_be_found_is_read_off_a_render() -> None:
    renderer = qwen3()
    extension = renderer.extend(array([1, 2, 3]), {"role": "assistant", "content": ""}, [NEXT], None)
    assert renderer.decode(extension.ids).startswith("<|im_end|>\n<|im_start|>user\nq2<|im_end|>")


def test_the_bridge_sees_only_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer, seen = qwen3(), []
    bridge = renderer._inner.bridge_to_next_turn

    def watching(left: list[int], turn: list[int], *args: Any, **kwargs: Any) -> Any:
        seen.append(len(left) + len(turn))
        return bridge(left, turn, *args, **kwargs)

    monkeypatch.setattr(renderer._inner, "bridge_to_next_turn", watching)
    turn = renderer.render([USER], None).tolist() + renderer.tokenizer.encode("a1<|im_end|>").tolist()
    for length in (0, 50_000):
        served = np.concatenate([np.full(length, 97, dtype=np.int32), array(turn)])
        renderer.extend(served, {"role": "assistant", "content": "a1"}, [NEXT], None)
    assert seen[1] - seen[0] < 100


def test_roles_and_stops_are_the_familys() -> None:
    renderer = qwen3()
    assert renderer.append_roles == {"assistant", "system", "tool", "user"}
    assert {renderer.decode([number]) for number in renderer.stop_token_ids} == {
        "<|im_end|>",
        "<|endoftext|>",
    }
    assert renderer.comparison.assistant_prefix == "<|im_start|>assistant\n"
    assert {renderer.decode([number]) for number in renderer.comparison.trailing_ids} == {"\n"}


def test_a_reply_is_parsed_by_the_family() -> None:
    text = f"<think>\nw\n</think>\n\nsee\n{CALL_TEXT}\n{CALL_TEXT}<|im_end|>"
    parsed = qwen3().parse(qwen3().tokenizer.encode(text), TOOLS)
    assert not parsed.ill_formed
    assert parsed.message["content"].strip() == "see"
    assert parsed.message["reasoning_content"].strip() == "w"
    assert [call["function"] for call in parsed.message["tool_calls"]] == [
        {"name": "ls", "arguments": '{"n": 1}'},
        {"name": "ls", "arguments": '{"n": 1}'},
    ]


@pytest.mark.parametrize(
    "broken", ["<tool_call>\n{bad\n</tool_call>", '<tool_call>\n{"name": "ls"', f"{CALL_TEXT}{{"]
)
def test_a_malformed_call_is_text(broken: str) -> None:
    text = f"see\n<tool_call>\n{{bad\n</tool_call>{broken}"
    parsed = qwen3().parse(qwen3().tokenizer.encode(text + "<|im_end|>"), TOOLS)
    assert parsed.ill_formed
    assert parsed.message == {"role": "assistant", "content": text}


def test_kwargs_are_the_familys_own() -> None:
    clone = qwen3().with_kwargs({"enable_thinking": False})
    assert clone is qwen3().with_kwargs({"enable_thinking": False})
    assert clone.decode(clone.render([USER], None)).endswith("<think>\n\n</think>\n\n")
    assert clone.head_text(TOOLS) == qwen3().head_text(TOOLS)
    with pytest.raises(InvalidTemplateKwargs, match="Unsupported chat_template_kwargs"):
        qwen3().with_kwargs({"nope": 1})


def test_an_empty_conversation_is_refused_in_the_familys_words() -> None:
    with pytest.raises(TemplateError, match="No messages"):
        qwen3().render([], None)


def test_drift_is_told_by_the_familys_marks() -> None:
    renderer = qwen3()
    turn: Message = {"role": "assistant", "content": "a1"}
    expected = renderer.render([USER, turn], None, add_generation_prompt=False)
    said = renderer.tokenizer.encode("<think>\n\n</think>\n\na2<|im_end|>")
    served = np.concatenate([renderer.render([USER], None), said])
    assert [mismatch.type for mismatch in renderer.compare(expected, served)] == ["assistant_text"]
