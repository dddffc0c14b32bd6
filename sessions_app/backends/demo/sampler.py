"""Turns a text into ids the way a sampling model may: a legal spelling, rarely the canonical one.

Invariant: decoding the ids gives the text back. Re-tokenising that text would give other ids: this is the
drift the product exists for, produced on purpose.
"""

import random
import re
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from sessions_app.rendering.protocol import Ids

_MARKERS = re.compile(r"(</?(?:think|tool_call)>)")
_MEAN_PIECE = 7


class Tokenizer(Protocol):
    """What the sampler needs of a tokenizer."""

    def encode(self, text: str) -> Ids:
        """Ids of a text."""
        ...

    def decode(self, ids: Ids) -> str:
        """Text of ids."""
        ...


def sample_ids(text: str, tokenizer: Tokenizer, chance: random.Random) -> list[int]:
    """A random legal split of `text`; markers that parsers look for keep their own tokens."""
    pieces = [piece for part in _MARKERS.split(text) for piece in _pieces(part, chance)]
    ids = [token for piece in pieces for token in tokenizer.encode(piece).tolist()]
    if tokenizer.decode(np.asarray(ids, dtype=np.int32)) == text:
        return ids
    return tokenizer.encode(text).tolist()


def sample_logprobs(count: int, chance: random.Random) -> list[float]:
    """Negative, mostly near zero, exact in float32 as engines' are."""
    drawn = [-chance.expovariate(3.0) - 1e-6 for _ in range(count)]
    return [float(value) for value in np.asarray(drawn, dtype=np.float32)]


def _pieces(part: str, chance: random.Random) -> Iterator[str]:
    """`part` cut at random places; a marker or an empty part stays whole."""
    if _MARKERS.fullmatch(part):
        yield part
        return
    while part:
        size = 1 + int(chance.expovariate(1 / _MEAN_PIECE))
        yield part[:size]
        part = part[size:]
