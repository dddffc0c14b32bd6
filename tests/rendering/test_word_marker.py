"""Tokenizers that mark word starts: new text is tokenised as it stands in the full prompt, not as if
alone."""

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from sessions_app.rendering.protocol import Message
from sessions_app.rendering.tokenizer import ChatTokenizer
from tests.rendering.support import array, fed, plain

CORPUS = ["hello there how are you [INST] question [/INST] answer second words Human Assistant : \n"] * 50
KINDS = ("always", "first", "prepended")
BRACKETS = (
    "{% for m in messages %}{% if m.role == 'user' %}<s>[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
PROSE = (
    "{% for m in messages %}{% if m.role == 'user' %}Human: {{ m.content }}\n\n"
    "{% else %}Assistant: {{ m.content }}</s>\n\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)
UNMARKED = PROSE.replace("</s>", "")
ASK: Message = {"role": "user", "content": "question"}
TURN: Message = {"role": "assistant", "content": "hello there"}
NEXT: Message = {"role": "user", "content": "second words"}


@cache
def tokenizer(kind: str) -> ChatTokenizer:
    built = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    if kind == "prepended":
        built.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    else:
        built.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=kind)
    strip: Any = decoders.Strip(content=" ", left=1, right=0)
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), strip]
    )
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    built.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=600, show_progress=False, special_tokens=special)
    )
    built.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in ("<s>", "</s>")])
    folder = Path(tempfile.mkdtemp())
    built.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", "bos_token": "<s>"}))
    return ChatTokenizer.load(str(folder))


@pytest.mark.parametrize("template", [BRACKETS, PROSE, UNMARKED])
@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_are_those_of_the_full_prompt(kind: str, template: str) -> None:
    renderer = plain(template, tokenizer(kind))
    fresh = renderer.render([ASK, TURN, NEXT], None).tolist()
    end = renderer.tokenizer.token_id("</s>")
    said = (
        index + 1
        for index in range(len(fresh))
        if renderer.decode(fresh[: index + 1]).endswith("hello there")
    )
    served = fresh[: fresh.index(end) + 1] if end in fresh else fresh[: next(said)]
    assert fed(served, renderer.extend(array(served), TURN, [NEXT], None)) == fresh


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_token_without_the_blank_before_it_is_not_repeated(kind: str) -> None:
    renderer = plain(BRACKETS, tokenizer(kind))
    end = renderer.tokenizer.token_id("</s>")
    assert end is not None
    said = [*renderer.tokenizer.encode("hello").tolist(), end]
    served = [*renderer.render([ASK], None).tolist(), *said]
    prompt = fed(served, renderer.extend(array(served), TURN, [NEXT], None))
    assert prompt.count(end) == 1
