"""`renderers:gpt-oss`: its vocabulary comes from the model's tokenizer; turns begin messages of their own.

With the real tokenizer where the machine has it: a folder below REAL_TOKENIZERS.
"""

import os
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.rendering.drift import drift
from sessions_app.rendering.dummy import TEXT_TURN
from sessions_app.rendering.package import harmony
from sessions_app.rendering.package.renderer import PackageRenderer
from sessions_app.rendering.package.seams import FamilySeams
from sessions_app.rendering.protocol import Message
from sessions_app.rendering.tokenizer import ChatTokenizer
from sessions_app.rendering.verification import FAIL, verify
from tests.rendering.support import array, byte_tokenizer, fed
from tests.rendering.test_factory import load

USER: Message = {"role": "user", "content": "q1"}
NEXT: Message = {"role": "user", "content": "q2"}
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "ls", "description": "d", "parameters": {"type": "object"}}}
]
CALL = (
    "why<|end|><|start|>assistant<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{}<|call|>"
)


def test_the_alphabet_spells_every_byte_once() -> None:
    assert sorted(harmony._byte_alphabet().values()) == list(range(256))
    assert harmony._byte_alphabet()["Ġ"] == ord(" ")


def test_another_tokenizer_is_refused_without_a_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(harmony.FOLDER_VARIABLE, raising=False)
    with pytest.raises(
        ValueError, match=r"renderers:gpt-oss does not fit .*: the vocabulary is not that of gpt-oss"
    ):
        load("renderers:gpt-oss")
    assert harmony.FOLDER_VARIABLE not in os.environ


def test_a_folder_without_the_file_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(harmony.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match=r"TIKTOKEN_ENCODINGS_BASE=.* holds no o200k_base.tiktoken"):
        harmony.provide_vocabulary(byte_tokenizer())


def ends_otherwise(messages: Any, tools: Any, prompt: bool) -> list[int]:
    """A family whose last turn ends with `!`, every other message with `/`."""
    text = "".join(f"<{message['role'][0]}{message['content']}/" for message in messages)
    return [ord(character) for character in (f"{text}<a" if prompt else f"{text[:-1]}!")]


def test_a_close_that_differs_at_the_end_of_a_conversation_is_told_from_a_prompt() -> None:
    seams = FamilySeams(
        ends_otherwise, lambda ids: "".join(map(chr, ids)), frozenset({ord("!")}), [ord("<"), ord("a")]
    )
    close, delta = seams.between(TEXT_TURN, [NEXT], None)
    assert (bytes(close.tolist()), bytes(delta.tolist())) == (b"/", b"<uq2/<a")


@cache
def real_tokenizer() -> ChatTokenizer | None:
    root = os.environ.get("REAL_TOKENIZERS", "")
    for file in sorted(Path(root).rglob("tokenizer.json")) if root else ():
        tokenizer = ChatTokenizer.load(str(file.parent))
        if tokenizer.token_id("<|constrain|>") is not None:
            return tokenizer
    return None


@pytest.fixture(scope="module")
def real() -> PackageRenderer:
    tokenizer = real_tokenizer()
    if tokenizer is None:
        pytest.skip("REAL_TOKENIZERS holds no tokenizer of gpt-oss: its family is NOT tested")
    return PackageRenderer(tokenizer, "gpt-oss", {})


def served_turn(renderer: PackageRenderer, said: str, tools: Any = None) -> list[int]:
    return [*renderer.render([USER], tools).tolist(), *renderer.encode(said).tolist()]


def test_seams_and_turns_of_the_real_family(real: PackageRenderer) -> None:
    assert [check for check in verify(real) if check.verdict == FAIL] == []
    assert {real.decode([number]) for number in real.stop_token_ids} == {"<|return|>", "<|call|>"}


@pytest.mark.parametrize("stop", ["<|return|>", ""])
def test_a_turn_goes_on_behind_its_own_stop_token_or_the_familys_close(
    real: PackageRenderer, stop: str
) -> None:
    served = served_turn(real, f"why<|end|><|start|>assistant<|channel|>final<|message|>a1{stop}")
    turn: Message = {"role": "assistant", "content": "a1", "reasoning_content": "why"}
    prompt = fed(served, real.extend(array(served), turn, [NEXT], None))
    assert prompt[: len(served)] == served
    fresh = real.decode(real.render([USER, turn, NEXT], None))
    assert real.decode(prompt).replace("<|return|>", "<|end|>") == fresh


def test_a_call_as_the_model_spells_it_is_read_and_answered(real: PackageRenderer) -> None:
    served = served_turn(real, CALL, TOOLS)
    parsed = real.parse(real.encode(CALL), TOOLS)
    assert parsed.message["reasoning_content"] == "why"
    assert parsed.message["tool_calls"][0]["function"] == {"name": "ls", "arguments": "{}"}
    result = {"role": "tool", "tool_call_id": "c", "name": "ls", "content": "nothing"}
    prompt = fed(served, real.extend(array(served), parsed.message, [result], TOOLS))
    assert prompt[: len(served)] == served
    assert real.decode(prompt[len(served) :]).startswith(
        "<|start|>functions.ls to=assistant<|channel|>commentary"
    )


def test_a_call_that_was_cut_is_text_and_marked(real: PackageRenderer) -> None:
    said = CALL.removesuffix("}<|call|>")
    parsed = real.parse(real.encode(said), TOOLS)
    assert (parsed.ill_formed, parsed.message["content"]) == (True, said)


def test_the_day_is_that_of_the_render_and_belongs_to_no_head(real: PackageRenderer) -> None:
    day = datetime(2031, 5, 17)
    assert "Current date: 2031-05-17" in real.decode(real.render([USER], None, when=day))
    assert str(datetime.now().year) not in real.head_text(None)
    fixed = real.with_kwargs({"conversation_start_date": "2020-02-02"})
    assert "Current date: 2020-02-02" in fixed.decode(fixed.render([USER], None, when=day))


texts = st.text(alphabet="abq \n<>|é😀", min_size=1, max_size=10).filter(lambda text: text.strip() == text)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_what_is_fed_spells_a_fresh_render(real: PackageRenderer, data: st.DataObject) -> None:
    history: list[Message] = [{"role": "user", "content": data.draw(texts)}]
    served = real.render(history, None)
    for why, content, question in data.draw(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=3)):
        said = f"{why}<|end|><|start|>assistant<|channel|>final<|message|>{content}"
        stop = "<|return|>" if data.draw(st.booleans()) else ""
        served = np.concatenate([served, real.encode(said + stop)])
        turn: Message = {"role": "assistant", "content": content, "reasoning_content": why}
        assert drift(real, [*history, turn], None, served).mismatches == ()
        extension = real.extend(served, turn, [{"role": "user", "content": question}], None)
        assert extension.trim == 0
        served = np.concatenate([served, extension.ids])
        history = [*history, turn, {"role": "user", "content": question}]
    assert real.decode(served).replace("<|return|>", "<|end|>") == real.decode(real.render(history, None))
