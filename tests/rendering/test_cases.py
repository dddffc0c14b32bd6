"""Prompts of the acceptance cases that turn on rendering, with the cases' own tokenizer."""

from typing import Any

import pytest

from sessions_app.rendering.protocol import Message
from tests.rendering.support import array, case_tokenizer, fed, plain

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
STRIP_THINK = (
    "{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}"
    "{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content and loop.index0 > ns.last %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
EMPTY_THINK = CHATML.replace("assistant\n{% endif %}", "assistant\n<think></think>{% endif %}")
GLM = (
    "{% for m in messages %}{% if m.role == 'tool' %}<|obs|>{% else %}{{ m.role }}{% endif %}{{ m.content }}"
    "{% endfor %}{% if add_generation_prompt %}assistant{% endif %}"
)
HELLO: Message = {"role": "user", "content": "hello"}
FIRST = [1, 5, 3, 101, 2, 3, 1, 6, 3]


def call(arguments: str, content: str | None = "") -> Message:
    function = {"name": "ls", "arguments": arguments}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def continued(
    template: str, output: list[int], turn: Message, new: list[Message], **options: Any
) -> list[int]:
    renderer = plain(template, case_tokenizer())
    prompt = renderer.render([HELLO], None).tolist()
    extension = renderer.extend(array([*prompt, *output]), turn, new, None, **options)
    return fed([*prompt, *output], extension)


@pytest.mark.parametrize("template", [CHATML, STRIP_THINK])
def test_a_first_prompt_is_the_templates(template: str) -> None:
    assert plain(template, case_tokenizer()).render([HELLO], None).tolist() == FIRST


def test_case_01_the_second_attempt_is_extended() -> None:
    new: list[Message] = [{"role": "user", "content": "ok"}]
    expected = [*FIRST, 101, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3]
    assert continued(CHATML, [101, 2], {"role": "assistant", "content": "hello"}, new) == expected


def test_case_05_served_reasoning_stays() -> None:
    turn: Message = {"role": "assistant", "content": "ab", "reasoning_content": "ok"}
    expected = [*FIRST, 8, 102, 9, 1097, 1098, 2, 3, 1, 5, 3, 100, 2, 3, 1, 6, 3]
    output = [8, 102, 9, 1097, 1098, 2]
    assert continued(STRIP_THINK, output, turn, [{"role": "user", "content": "ab"}]) == expected


def test_case_06_the_newline_behind_the_close_is_put_back() -> None:
    new: list[Message] = [{"role": "tool", "tool_call_id": "c1", "content": "ab"}]
    expected = [*FIRST, 10, 102, 11, 2, 3, 1, 7, 3, 100, 2, 3, 1, 6, 3]
    assert continued(CHATML, [10, 102, 11, 2], call("{}"), new) == expected


def test_case_07_the_sampled_split_is_kept() -> None:
    turn: Message = {"role": "assistant", "content": "ab"}
    expected = [*FIRST, 1097, 1098, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3]
    assert continued(CHATML, [1097, 1098, 2], turn, [{"role": "user", "content": "ok"}]) == expected


@pytest.mark.parametrize("content", [None, ""])
@pytest.mark.parametrize("arguments", ['{"path": ', "", "[1]", "\ud800", '{"a": 1e999}'])
def test_case_09_malformed_arguments_are_continued(arguments: str, content: str | None) -> None:
    new: list[Message] = [{"role": "tool", "tool_call_id": "c1", "content": "error: bad json"}]
    prompt = continued(CHATML, [10, 102, 2], call(arguments, content), new)
    assert prompt[: len(FIRST) + 3] == [*FIRST, 10, 102, 2]
    assert prompt[len(FIRST) + 3 : len(FIRST) + 7] == [3, 1, 7, 3]


def test_case_14_a_cut_turn_is_closed() -> None:
    turn: Message = {"role": "assistant", "content": "ab"}
    expected = [*FIRST, 1097, 1098, 2, 3, 1, 5, 3, 102, 2, 3, 1, 6, 3]
    assert continued(CHATML, [1097, 1098], turn, [{"role": "user", "content": "ok"}], cut=True) == expected


def test_an_empty_think_scaffold_is_part_of_the_next_prompt() -> None:
    turn: Message = {"role": "assistant", "content": "ab"}
    prompt = continued(EMPTY_THINK, [100, 2], turn, [{"role": "user", "content": "ok"}])
    assert prompt[-5:] == [1, 6, 3, 8, 9]
    assert prompt.count(8) == 2


def test_a_role_token_stop_is_not_doubled() -> None:
    renderer = plain(GLM, case_tokenizer())
    served = [*renderer.render([HELLO], None).tolist(), 102, 12]
    extension = renderer.extend(
        array(served), call("{}"), [{"role": "tool", "content": "ab", "tool_call_id": "c1"}], None
    )
    assert fed(served, extension) == [5, 101, 6, 102, 12, 100, 6]
    assert 12 in renderer.stop_token_ids
