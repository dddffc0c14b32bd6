"""The end of the served ids against the close of the turn: nothing doubled, nothing lost."""

import pytest

from sessions_app.rendering.protocol import Message
from sessions_app.rendering.template_renderer import TemplateRenderer
from tests.rendering.support import array, byte_tokenizer, fed, healing_renderer, plain

END, CALL_END, OBSERVATION, USER, ENDOFTEXT = (
    "<|im_end|>",
    "<|call_end|>",
    "<|observation|>",
    "<|user|>",
    "<|endoftext|>",
)
ASK: Message = {"role": "user", "content": "q1"}
NEXT: Message = {"role": "user", "content": "q2"}
TEXT: Message = {"role": "assistant", "content": "a1"}
RESULT: Message = {"role": "tool", "content": "r1", "tool_call_id": "c1"}
CALL: Message = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}],
}


def prompt_text(renderer: TemplateRenderer, said: str, turn: Message, new: list[Message]) -> str:
    served = [*renderer.render([ASK], None).tolist(), *renderer.tokenizer.encode(said).tolist()]
    return renderer.decode(fed(served, renderer.extend(array(served), turn, new, None)))


@pytest.mark.parametrize("said", ["a1", f"a1{END}", f"a1{END}\n", f"a1{END}\n<|im_start|>"])
def test_only_what_is_missing_of_the_close_is_added(said: str) -> None:
    renderer = healing_renderer("plain")
    text = prompt_text(renderer, said, TEXT, [NEXT])
    assert text == renderer.decode(renderer.render([ASK, TEXT, NEXT], None))


@pytest.mark.parametrize("said", ["<tool_call>x</tool_call>", f"<tool_call>x</tool_call>{CALL_END}"])
def test_a_call_is_closed_its_own_way(said: str) -> None:
    text = prompt_text(healing_renderer("asym_close"), said, CALL, [RESULT])
    assert text.count(CALL_END) == 1
    assert f"</tool_call>{CALL_END}\n<|im_start|>tool\n" in text


def test_a_close_of_another_kind_stands_for_the_close() -> None:
    text = prompt_text(healing_renderer("asym_close"), f"<tool_call>x</tool_call>{END}", CALL, [RESULT])
    assert f"</tool_call>{END}\n<|im_start|>tool\n" in text
    assert CALL_END not in text


def test_a_stop_token_unknown_to_the_template_does_not_replace_its_close() -> None:
    text = prompt_text(healing_renderer("plain"), f"a1{ENDOFTEXT}", TEXT, [NEXT])
    assert f"a1{ENDOFTEXT}{END}\n<|im_start|>user" in text


@pytest.mark.parametrize(
    ("said", "turn", "new", "opener"),
    [
        (f"a1{USER}", TEXT, NEXT, USER),
        ("a1", TEXT, NEXT, USER),
        (f"x{OBSERVATION}", CALL, RESULT, OBSERVATION),
        ("x", CALL, RESULT, OBSERVATION),
    ],
)
def test_an_opener_that_was_sampled_as_stop_token_is_not_opened_again(
    said: str, turn: Message, new: Message, opener: str
) -> None:
    renderer = healing_renderer("role_delim")
    text = prompt_text(renderer, said, turn, [new])
    behind = text.partition("<|assistant|>\n")[2]
    assert behind.count(opener) == 1
    assert behind.startswith(said.removesuffix(opener) + opener + "\n")


def test_the_wrong_opener_gives_way_to_the_right_one() -> None:
    renderer = healing_renderer("role_delim")
    served = [*renderer.render([ASK], None).tolist(), *renderer.tokenizer.encode(f"a1{OBSERVATION}").tolist()]
    extension = renderer.extend(array(served), TEXT, [NEXT], None)
    assert extension.trim == 1 == renderer.max_trim_tokens
    assert renderer.decode(fed(served, extension)) == renderer.decode(
        renderer.render([ASK, TEXT, NEXT], None)
    )


def test_a_merge_across_the_seam_leaves_the_close_as_it_is_served() -> None:
    """`<|im_end|>` newline | newline `<|im_start|>`: the two newlines would be one token of a fresh
    render."""
    renderer = healing_renderer("nl_glue")
    served = [*renderer.render([ASK], None).tolist(), *renderer.tokenizer.encode(f"a1{END}").tolist()]
    extension = renderer.extend(array(served), TEXT, [NEXT], None)
    assert extension.glue.tolist() == [10]
    assert extension.delta[:2].tolist() == [10, 272]


def test_results_in_a_row_share_a_block() -> None:
    renderer = healing_renderer("grouped_tools")
    other: Message = {"role": "tool", "content": "r2", "tool_call_id": "c2"}
    text = prompt_text(renderer, f"x{END}", CALL, [RESULT, other, NEXT])
    responses = "".join(f"\n<tool_response>\n{name}\n</tool_response>" for name in ("r1", "r2"))
    block = f"<|im_start|>user{responses}{END}\n"
    assert text.endswith(f"x{END}\n{block}<|im_start|>user\nq2{END}\n<|im_start|>assistant\n")


def test_without_new_messages_only_the_generation_prompt_is_added() -> None:
    text = prompt_text(healing_renderer("plain"), f"a1{END}", TEXT, [])
    assert text.endswith(f"a1{END}\n<|im_start|>assistant\n")


def test_served_reasoning_stays_where_the_template_would_drop_it() -> None:
    renderer = healing_renderer("strip_think")
    said = f"<think>\nwhy\n</think>\n\na1{END}"
    turn: Message = {**TEXT, "reasoning_content": "why"}
    text = prompt_text(renderer, said, turn, [NEXT])
    assert said in text
    assert "why" not in renderer.decode(renderer.render([ASK, turn, NEXT], None))


def test_a_close_that_stands_only_inside_a_history_is_found() -> None:
    """Some templates print no close behind the last turn, or another one."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
        "{% if not loop.last or m.role != 'assistant' %}<|im_end|>\n{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{% if messages[-1].role == 'assistant' %}<|im_end|>\n{% endif %}"
        "<|im_start|>assistant\n{% endif %}"
    )
    renderer = plain(template, byte_tokenizer())
    text = prompt_text(renderer, f"a1{END}", TEXT, [NEXT])
    assert text == renderer.decode(renderer.render([ASK, TEXT, NEXT], None))
