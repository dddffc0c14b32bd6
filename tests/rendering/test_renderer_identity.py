"""Kwargs, heads and fingerprints: what makes two renderers, or two heads, the same."""

from typing import Any

import pytest

from sessions_app.errors import InvalidTemplateKwargs
from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.families.facts import FAMILIES
from sessions_app.rendering.family_renderer import FamilyRenderer
from sessions_app.rendering.parsers.registry import reply_parser
from tests.rendering.support import HISTORY, bpe_tokenizer, byte_tokenizer, family, plain

HEAD = (
    "{% if system_note is defined %}{{ system_note }}{% endif %}{{ tools | tojson if tools else '' }}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ strftime_now('%d') }}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{{ enable_thinking }}{% endif %}"
)


def tool(**parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}}


def test_no_overrides_are_the_same_renderer() -> None:
    renderer = family("qwen3")
    assert renderer.with_kwargs(None) is renderer
    assert renderer.with_kwargs({}) is renderer
    assert renderer.with_kwargs({"clear_thinking": 0}) is renderer


def test_a_renderer_for_other_kwargs_is_made_once() -> None:
    renderer = family("qwen3")
    clone = renderer.with_kwargs({"enable_thinking": False})
    assert clone is renderer.with_kwargs({"enable_thinking": False})
    assert clone.template_kwargs == {"enable_thinking": False, "clear_thinking": False}
    assert clone.fingerprint != renderer.fingerprint
    assert clone.template_fingerprint == renderer.template_fingerprint
    assert clone.decode(clone.render([{"role": "user", "content": "q"}], None)).endswith("</think>\n")


@pytest.mark.parametrize(
    ("name", "kwargs", "shown", "registered"),
    [
        ("qwen3", {"clear_thinking": True}, "clear_thinking=True", "Qwen3TITOTokenizer: False"),
        ("qwen35", {"clear_thinking": None}, "clear_thinking=None", "Qwen35TITOTokenizer: False"),
        ("kimi26", {"preserve_thinking": "x"}, "preserve_thinking='x'", "Kimi26TITOTokenizer: True"),
        ("minimax_m27", {"clear_thinking": 1}, "clear_thinking=1", "MinimaxM27TITOTokenizer: False"),
    ],
)
def test_a_familys_constant_cannot_be_overridden(
    name: str, kwargs: dict[str, Any], shown: str, registered: str
) -> None:
    with pytest.raises(InvalidTemplateKwargs) as caught:
        family(name).with_kwargs(kwargs)
    text = f"chat template kwarg {shown} conflicts with the value registered for {registered}"
    assert str(caught.value) == text


@pytest.mark.parametrize("kwargs", ["x", [], 1])
def test_kwargs_must_be_an_object(kwargs: Any) -> None:
    with pytest.raises(InvalidTemplateKwargs, match=r"^chat_template_kwargs must be an object$"):
        family("qwen3").with_kwargs(kwargs)


def test_the_conversation_itself_is_no_kwarg() -> None:
    with pytest.raises(InvalidTemplateKwargs, match="messages is reserved"):
        family("default").with_kwargs({"messages": []})


def test_launch_kwargs_are_checked_too() -> None:
    template = ChatTemplate((HISTORY / "config/chatml.jinja").read_text())
    parser = reply_parser("qwen3", "think", byte_tokenizer())
    kwargs = {"truncate_history_thinking": True}
    with pytest.raises(InvalidTemplateKwargs, match="Nemotron3TITOTokenizer"):
        FamilyRenderer(byte_tokenizer(), template, parser, kwargs, FAMILIES["nemotron3"])


def test_a_family_whose_tokens_are_missing_is_refused() -> None:
    template = ChatTemplate((HISTORY / "config/minimaxish.jinja").read_text())
    parser = reply_parser("qwen3", "think", bpe_tokenizer())
    with pytest.raises(ValueError, match=r"template:minimax_m25 needs '\[e~\[' as one token"):
        FamilyRenderer(bpe_tokenizer(), template, parser, {}, FAMILIES["minimax_m25"])


def test_only_what_the_head_shows_changes_the_head() -> None:
    renderer = plain(HEAD, byte_tokenizer())
    tools = [tool(a=1, b=2), tool(c=3)]
    head = renderer.head_text(tools)
    assert head == renderer.head_text([tool(b=2, a=1), tool(c=3)])
    assert head != renderer.head_text([tool(c=3), tool(a=1, b=2)])
    assert head != renderer.head_text([tool(a=1, b=3), tool(c=3)])
    assert head != renderer.head_text(None) == renderer.head_text([])
    assert head == renderer.with_kwargs({"enable_thinking": False}).head_text(tools)
    assert head != renderer.with_kwargs({"system_note": "n"}).head_text(tools)


def test_the_day_of_the_month_is_no_change_of_the_head() -> None:
    assert "%d" in plain(HEAD, byte_tokenizer()).head_text(None)


def test_a_template_that_refuses_the_dummy_still_has_a_head() -> None:
    assert "template error: no" in plain("{{ raise_exception('no') }}", byte_tokenizer()).head_text(None)
