"""Served ids told to spell a render without tokenising it: never where the comparator finds a difference."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from sessions_app.rendering.comparator import ComparisonRules, compare
from sessions_app.rendering.factory import DEMO_MODEL
from sessions_app.rendering.protocol import Ids
from sessions_app.rendering.spelling import Spelling
from sessions_app.rendering.tokenizer import ChatTokenizer
from tests.rendering.support import HISTORY, array, case_tokenizer, ids_of_pieces, plain
from tests.rendering.test_word_marker import tokenizer as word_marker

CHATML = (HISTORY / "config/chatml.jinja").read_text()
DEMO = ChatTokenizer.load(str(DEMO_MODEL))
PIECES = ("<|im_start|>user\n", "<|im_start|>assistant\n", "<|im_end|>", "\n", "hello there", "é", "e\u0301",
          "<think>", "</think>", "<|im", "_end|>", " ", "🙂", "\ufffd", "\ud800")  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


def rules_of(tokenizer: ChatTokenizer, trailing: Sequence[str] = ("\n",)) -> ComparisonRules:
    numbers = (tokenizer.token_id(text) for text in trailing)
    ids = frozenset(number for number in numbers if number is not None)
    return ComparisonRules(tokenizer.special_ids, ids, "<|im_start|>assistant")


def differs(tokenizer: ChatTokenizer, rules: ComparisonRules, served: Ids, text: str) -> bool:
    return compare(tokenizer.encode(text).tolist(), served.tolist(), rules, tokenizer.decode) != []


def built(**stages: Any) -> ChatTokenizer:
    """Byte-level BPE without merges, with the stages changed that are named."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[: stages.pop("letters", 256)]
    vocabulary = {letter: number for number, letter in enumerate(letters)}
    suffix = {"end_of_word_suffix": stages.pop("suffix")} if "suffix" in stages else {}
    backend = Tokenizer(models.BPE(vocabulary, [], **suffix))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<|end|>", normalized=False, rstrip=stages.pop("rstrip", False))])
    backend.add_tokens([AddedToken(text, normalized=False) for text in stages.pop("added", ())])
    for name, stage in stages.items():
        setattr(backend, name, stage)
    return ChatTokenizer(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>"), "built")


@settings(max_examples=300)
@given(text=texts, spelled=texts, cuts=st.lists(st.integers(0, 60), max_size=4), trailing=st.booleans())
def test_what_spells_a_render_differs_nowhere(
    text: str, spelled: str, cuts: list[int], trailing: bool
) -> None:
    rules = rules_of(DEMO, ("\n", "<think>", "<|im_end|>") if trailing else ("\n",))
    spelled = spelled.replace("\ud800", "")
    served = np.concatenate([DEMO.encode(part) for part in _parts(spelled, cuts)] or [array([])])
    if Spelling(DEMO, rules).spells(served, text):
        assert not differs(DEMO, rules, served, text)


@settings(max_examples=200)
@given(text=texts, cuts=st.lists(st.integers(0, 60), max_size=4))
def test_other_tokens_of_the_same_text_are_told_by_decoding_alone(text: str, cuts: list[int]) -> None:
    text = text.replace("\ud800", "").replace("e\u0301", "é") + "<|im_end|>\n"
    served = ids_of_pieces(type("Renderer", (), {"tokenizer": DEMO}), text, [cut % len(text) for cut in cuts])
    assert Spelling(DEMO, rules_of(DEMO)).spells(served, text) == (
        not differs(DEMO, rules_of(DEMO), served, text)
    )


def _parts(text: str, cuts: list[int]) -> list[str]:
    edges = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[start:end] for start, end in pairwise(edges)]


def test_a_separator_spelled_in_plain_tokens_is_no_separator() -> None:
    letters = [DEMO.encode(letter) for letter in "<|im_end|>"]
    served = np.concatenate([DEMO.encode("<|im_start|>hi"), *letters])
    assert DEMO.decode(served) == "<|im_start|>hi<|im_end|>"
    assert not Spelling(DEMO, rules_of(DEMO)).spells(served, "<|im_start|>hi<|im_end|>")


def test_a_tail_that_is_not_surely_left_out_is_tokenised() -> None:
    spelling = Spelling(DEMO, rules_of(DEMO))
    assert spelling.spells(DEMO.encode("hi<|im_end|>"), "hi<|im_end|>\n")
    assert not spelling.spells(DEMO.encode("hi<|im_end|>there"), "hi<|im_end|>there\n")


def test_a_text_that_its_normalizer_would_change_is_tokenised() -> None:
    composing = built(normalizer=normalizers.NFC())
    spelling = Spelling(composing, rules_of(composing))
    assert spelling.spells(composing.encode("é<|end|>"), "é<|end|>")
    assert not spelling.spells(composing.encode("é<|end|>"), "e\u0301<|end|>")


@pytest.mark.parametrize(
    "lossy",
    [
        {"normalizer": normalizers.Lowercase()},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
        {"pre_tokenizer": pre_tokenizers.Whitespace()},
        {"pre_tokenizer": pre_tokenizers.Sequence(
            [pre_tokenizers.Split(" ", "removed"), pre_tokenizers.ByteLevel(add_prefix_space=False)])},
        {"decoder": decoders.Sequence([decoders.ByteLevel(), decoders.Strip(content=" ", left=1, right=0)])},
        {"letters": 200},
        {"suffix": "</w>"},
        {"rstrip": True},
        {"added": ["caf\u00e9"]},
        {"added": ["e\u0301"]},
    ],
    ids=lambda lossy: next(iter(lossy)),
)  # fmt: skip
def test_a_tokenizer_that_may_lose_text_always_tokenises(lossy: dict[str, Any]) -> None:
    tokenizer = built(**lossy)
    assert built().keeps_text
    assert not tokenizer.keeps_text
    assert not Spelling(tokenizer, rules_of(tokenizer)).spells(array([]), "")


@pytest.mark.parametrize("swallowing", ["<|end|><|end|>", "x<|", "|>y", "<|e"])
def test_an_added_token_that_can_swallow_a_separator_makes_every_text_be_tokenised(swallowing: str) -> None:
    tokenizer = built(added=[swallowing])
    served = tokenizer.encode("hi<|end|>")
    assert not Spelling(tokenizer, rules_of(tokenizer)).spells(served, "hi<|end|>")


def test_a_tail_that_is_a_part_of_a_letter_makes_every_text_be_tokenised() -> None:
    tokenizer = built()
    part = tokenizer.encode("é")[:1]
    rules = ComparisonRules(tokenizer.special_ids, frozenset(part.tolist()), "")
    assert tokenizer.decode(part) == "\ufffd"
    assert not Spelling(tokenizer, rules).spells(array([]), "\ufffd")


def test_a_tail_whose_text_is_read_as_another_id_makes_every_text_be_tokenised() -> None:
    tokenizer = built(added=["\n"])
    rules = ComparisonRules(tokenizer.special_ids, frozenset({tokenizer.vocabulary()["Ċ"]}), "")
    served = tokenizer.encode("<|end|>")
    assert differs(tokenizer, rules, served, "<|end|>\n")
    assert not Spelling(tokenizer, rules).spells(served, "<|end|>\n")


def test_two_separators_of_one_text_make_every_text_be_tokenised() -> None:
    tokenizer = built(added=[" "])
    plain_blank = tokenizer.vocabulary()["Ġ"]
    rules = ComparisonRules(
        tokenizer.special_ids | {plain_blank, *tokenizer.encode(" ").tolist()}, frozenset(), ""
    )
    served = array([plain_blank])
    assert differs(tokenizer, rules, served, " ")
    assert not Spelling(tokenizer, rules).spells(served, " ")


@pytest.mark.parametrize("tokenizer", [word_marker("always"), case_tokenizer()], ids=["words", "cases"])
def test_tokenizers_that_are_not_byte_level_always_tokenise(tokenizer: ChatTokenizer) -> None:
    assert not tokenizer.keeps_text


def test_a_path_that_spells_its_render_is_compared_without_tokenising(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renderer = plain(CHATML, DEMO)
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "there"}]
    served = renderer.render(messages, None, add_generation_prompt=False)
    changed = renderer.render(
        [*messages[:1], {"role": "assistant", "content": "here"}], None, add_generation_prompt=False
    )
    assert [found.type for found in renderer.mismatches(messages, None, changed)] == ["assistant_text"]
    monkeypatch.setattr(ChatTokenizer, "encode", lambda *_: pytest.fail("tokenised"))
    assert renderer.mismatches(messages, None, served) == []
