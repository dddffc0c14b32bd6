"""A byte-level tokenizer with a few merges, made up in memory: enough for canonical spellings to exist."""

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from sessions_app.rendering.protocol import Ids

_MERGES = [
    ("h", "e"), ("t", "he"), ("i", "n"), ("in", "g"), ("e", "r"), ("o", "n"), ("l", "l"), ("o", "u"),
    ("Ġ", "the"), ("o", "r"), ("a", "n"), ("r", "e"), ("s", "t"), ("e", "s"), ("Ġ", "t"), ("i", "s"),
]  # fmt: skip
_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
_ADDED = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]


class ToyTokenizer:
    """Encodes and decodes like the product's own tokenizer class."""

    def __init__(self) -> None:
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        names = [*alphabet, *("".join(pair) for pair in _MERGES)]
        vocabulary = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self._tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=_MERGES))
        self._tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        self._tokenizer.decoder = decoders.ByteLevel()
        self._tokenizer.add_special_tokens([AddedToken(token, special=True) for token in _SPECIAL])
        self._tokenizer.add_tokens([AddedToken(token, special=False) for token in _ADDED])
        self.vocab_size = self._tokenizer.get_vocab_size()
        self.end_ids = frozenset({int(self.encode("<|im_end|>")[0])})

    def encode(self, text: str) -> Ids:
        return np.asarray(self._tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)

    def decode(self, ids: Ids) -> str:
        return self._tokenizer.decode(ids.tolist(), skip_special_tokens=False)
