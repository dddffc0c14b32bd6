"""The tokenizer that is there without anything configured."""

from pathlib import Path

from sessions_app.rendering.demo.train import train, write
from sessions_app.rendering.factory import DEMO_MODEL, load_renderer, load_tokenizer
from sessions_app.rendering.protocol import Message, Renderer
from sessions_app.rendering.tokenizer import ChatTokenizer
from tests.rendering.support import array

LINES = [
    "def answer(question: str) -> str:\n",
    '    return {"name": "add", "arguments": {}}\n',
    "naïve 😀 text\n",
]
TURN: Message = {
    "role": "assistant",
    "content": "text",
    "reasoning_content": "why",
    "tool_calls": [{"id": "a", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
}


def demo(**kwargs: object) -> Renderer:
    return load_renderer(
        "auto", model="", chat_template=None, kwargs=kwargs, tool_parser="qwen3", reasoning_parser="think"
    )


def test_every_role_can_be_appended_and_nothing_is_trimmed() -> None:
    assert demo().append_roles == {"assistant", "system", "tool", "user"}
    assert demo().max_trim_tokens == 0
    assert {demo().decode(array([number])) for number in demo().stop_token_ids} == {"<|im_end|>"}


def test_thinking_changes_only_the_suffix() -> None:
    quiet = demo().with_kwargs({"enable_thinking": False})
    assert quiet.head_text(None) == demo().head_text(None)
    ids = quiet.render([{"role": "user", "content": "q"}], None)
    assert quiet.decode(ids).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_a_turn_is_printed_as_it_is_parsed() -> None:
    told = demo().decode(
        demo().render([{"role": "user", "content": "q"}, TURN], None, add_generation_prompt=False)
    )
    said = told.partition("<|im_start|>assistant\n")[2]
    parsed = demo().parse(load_tokenizer(str(DEMO_MODEL)).encode(said), None)
    call = parsed.message["tool_calls"][0]["function"]
    assert (parsed.message["content"], parsed.message["reasoning_content"]) == ("text", "why")
    assert call == {"name": "add", "arguments": '{"a": 1}'}


def test_training_is_deterministic_and_spells_any_text(tmp_path: Path) -> None:
    write(train(iter(LINES)), tmp_path / "a")
    write(train(iter(LINES)), tmp_path / "b")
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"]
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    tokenizer = ChatTokenizer.load(str(tmp_path / "a"))
    text = "ünknown \u2603 text\n\n<|im_end|><think>"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.token_id("<|im_end|>") is not None
    assert tokenizer.token_id("two words") is None
