"""Whether a tokenizer gives back what it was given: decoding the ids of a text in NFC spells that text.

Pure. True of byte-level BPE without a lossy step, which is what current model families ship; anything not
known to keep its text is taken to lose some.
"""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from tokenizers.pre_tokenizers import ByteLevel

_LOSSLESS_NORMALIZERS = frozenset({"NFC"})
_SPLITTERS = frozenset({"Split", "Digits", "Punctuation"})


def keeps_text(backend: Any) -> bool:
    """`backend`: a `tokenizers.Tokenizer`, or None for a tokenizer without one."""
    return (
        backend is not None
        and all(step["type"] in _LOSSLESS_NORMALIZERS for step in _steps(backend.normalizer, "normalizers"))
        and _splits_bytes(list(_steps(backend.pre_tokenizer, "pretokenizers")))
        and [step["type"] for step in _steps(backend.decoder, "decoders")] == ["ByteLevel"]
        and _knows_every_byte(backend)
        and all(_comes_back(backend, *added) for added in backend.get_added_tokens_decoder().items())
    )


def _steps(stage: Any, nested: str) -> Iterator[Mapping[str, Any]]:
    """The steps of a stage, sequences unfolded."""
    if stage is not None:
        yield from _unfolded(json.loads(stage.__getstate__()), nested)


def _unfolded(step: Mapping[str, Any], nested: str) -> Iterator[Mapping[str, Any]]:
    if step["type"] != "Sequence":
        yield step
        return
    for inner in step[nested]:
        yield from _unfolded(inner, nested)


def _splits_bytes(steps: list[Mapping[str, Any]]) -> bool:
    """Cuts that drop nothing, then bytes without a space put in front."""
    if not steps or steps[-1]["type"] != "ByteLevel" or steps[-1]["add_prefix_space"]:
        return False
    return all(
        step["type"] in _SPLITTERS and step.get("behavior", "Isolated") != "Removed" for step in steps[:-1]
    )


def _knows_every_byte(backend: Any) -> bool:
    model = backend.model
    return (
        type(model).__name__ == "BPE"
        and not (model.dropout or model.continuing_subword_prefix or model.end_of_word_suffix)
        and all(backend.token_to_id(letter) is not None for letter in ByteLevel.alphabet())
    )


def _comes_back(backend: Any, number: int, token: Any) -> bool:
    """Whether an added token takes no text around it along, is read everywhere and decodes to its own text:
    one of letters that stand for bytes does not.
    """
    strips = token.lstrip or token.rstrip or token.single_word
    told = backend.decode([number], skip_special_tokens=False)
    return not strips and told == token.content and unicodedata.is_normalized("NFC", told)
