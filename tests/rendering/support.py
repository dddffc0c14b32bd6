"""Tokenizers and renderers that the rendering tests share. Loaded once; all are immutable."""

import json
import tempfile
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models

from sessions_app.rendering.chat_template import ChatTemplate
from sessions_app.rendering.families.facts import FAMILIES
from sessions_app.rendering.family_renderer import FamilyRenderer
from sessions_app.rendering.parsers.registry import reply_parser
from sessions_app.rendering.protocol import Extension, Ids
from sessions_app.rendering.template_renderer import TemplateRenderer
from sessions_app.rendering.tokenizer import ChatTokenizer

VECTORS = Path(__file__).parents[1] / "vectors"
HISTORY = VECTORS / "history"
HEALING = VECTORS / "healing"
TEMPLATES: dict[str, str] = json.loads((HEALING / "assets/chat_templates.json").read_text())


def array(numbers: Sequence[int]) -> Ids:
    return np.asarray(numbers, dtype=np.int32)


def fed(served: Sequence[int], extension: Extension) -> list[int]:
    """The prompt that an extension makes of the served ids."""
    kept = list(served)[: len(served) - extension.trim]
    return [*kept, *extension.ids.tolist()]


@cache
def byte_tokenizer() -> ChatTokenizer:
    return ChatTokenizer.load(str(HISTORY / "config/tokenizer"))


@cache
def bpe_tokenizer() -> ChatTokenizer:
    """Byte-level BPE with 15 merges; no eos token is configured."""
    folder = Path(tempfile.mkdtemp())
    (folder / "tokenizer.json").write_bytes((HEALING / "assets/toy_tokenizer.json").read_bytes())
    return ChatTokenizer.load(str(folder))


@cache
def case_tokenizer() -> ChatTokenizer:
    """The acceptance cases' tokenizer: longest match, one id a character, `ab`, `hello` and `ok` merged."""
    words = {
        "<unk>": 0,
        "\n": 3,
        "system": 4,
        "user": 5,
        "assistant": 6,
        "tool": 7,
        "ab": 100,
        "hello": 101,
        "ok": 102,
    }
    characters = {chr(point): 1000 + point for point in range(32, 0x250)}
    model = models.WordPiece(
        vocab={**words, **characters},
        unk_token="<unk>",
        continuing_subword_prefix="",
        max_input_chars_per_word=10**9,
    )
    tokenizer = Tokenizer(model)
    tokenizer.decoder = decoders.Fuse()
    folder = Path(tempfile.mkdtemp())
    tokenizer.save(str(folder / "tokenizer.json"))
    state = json.loads((folder / "tokenizer.json").read_text())
    marks = {
        1: "<|im_start|>",
        2: "<|im_end|>",
        8: "<think>",
        9: "</think>",
        10: "<tool_call>",
        11: "</tool_call>",
        12: "<|obs|>",
    }
    for number, text in marks.items():
        state["model"]["vocab"][text] = number
        token = AddedToken(text, special=number in (1, 2, 12), normalized=False)
        state["added_tokens"].append(
            {"id": number, "content": text, "single_word": False, "lstrip": False, "rstrip": False,
             "normalized": False, "special": token.special}
        )  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(state))
    return ChatTokenizer.load(str(folder))


@cache
def healing_renderer(name: str) -> TemplateRenderer:
    """`template` over one of the six templates of the healing vectors."""
    return TemplateRenderer(
        bpe_tokenizer(), ChatTemplate(TEMPLATES[name]), reply_parser("qwen3", "think", bpe_tokenizer()), {}
    )


def plain(template: str, tokenizer: ChatTokenizer | None = None, **kwargs: Any) -> TemplateRenderer:
    parser = reply_parser("qwen3", "think", bpe_tokenizer())
    return TemplateRenderer(tokenizer or bpe_tokenizer(), ChatTemplate(template), parser, kwargs)


@cache
def family(name: str, template: str = "chatml.jinja") -> FamilyRenderer:
    """`template:FAMILY` over one of the templates of the history vectors."""
    source = (HISTORY / "config" / template).read_text()
    parser = reply_parser("qwen3", "think", bpe_tokenizer())
    return FamilyRenderer(byte_tokenizer(), ChatTemplate(source), parser, {}, FAMILIES[name])


def ids_of_pieces(renderer: Any, text: str, cuts: Sequence[int]) -> Ids:
    """Ids of a text encoded in pieces. A cut inside a mark would spell it in other tokens, so cuts move
    before it."""
    for mark in ("<|im_end|>", "<|call_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"):
        start = text.find(mark)
        while start >= 0:
            cuts = [start if start < cut < start + len(mark) else cut for cut in cuts]
            start = text.find(mark, start + 1)
    edges = sorted({0, len(text), *cuts})
    pieces = [renderer.tokenizer.encode(text[a:b]) for a, b in pairwise(edges)]
    return np.concatenate(pieces) if pieces else array([])
