"""What each id of a sequence says: its own text, or its share of a character that several ids spell.

Pure; decoding is passed in. Invariant: the texts of neighbouring ids, joined, are the text of the sequence
as far as the tokenizer decodes it piecewise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

Decode = Callable[[Sequence[int]], str]

_BROKEN = "\N{REPLACEMENT CHARACTER}"
_MOST_PARTS = 8
"""Ids that may spell one character between them: bytes of the longest character, and some slack."""
_PROBED = 16


@dataclass(frozen=True, slots=True)
class Spelling:
    """The text of one id where it stands."""

    text: str
    continues: bool = False
    """It spells the rest of a character whose text stands with an earlier id."""


def spell(ids: Sequence[int], decode: Decode) -> list[Spelling]:
    """One spelling per id."""
    alone = {number: decode([number]) for number in set(ids)}
    texts = [alone[number] for number in ids]
    if _strips_leading_blank(alone, decode):
        texts = _after_left_neighbour(ids, alone, decode)
    spelled: list[Spelling] = []
    while len(spelled) < len(ids):
        at = len(spelled)
        joined = _joined(ids, texts, at, decode) if _BROKEN in texts[at] else None
        spelled += joined or [Spelling(texts[at])]
    return spelled


def _joined(ids: Sequence[int], texts: Sequence[str], at: int, decode: Decode) -> list[Spelling] | None:
    """The shortest run from here that decodes whole, as spellings; None where there is none."""
    for end in range(at + 2, min(at + _MOST_PARTS, len(ids)) + 1):
        if _BROKEN not in texts[end - 1]:
            return None
        text = decode(ids[at:end])
        if _BROKEN not in text:
            return [Spelling(text), *(Spelling("", continues=True) for _ in range(end - at - 1))]
    return None


def _strips_leading_blank(alone: dict[int, str], decode: Decode) -> bool:
    """Whether this tokenizer drops the blank that a word marker stands for at the start of a text."""
    probed = [number for number, text in alone.items() if text and _BROKEN not in text][:_PROBED]
    return any(decode([number, number]) != alone[number] * 2 for number in probed)


def _after_left_neighbour(ids: Sequence[int], alone: dict[int, str], decode: Decode) -> list[str]:
    texts = [alone[number] for number in ids[:1]]
    for left, number in pairwise(ids):
        pair = decode([left, number])
        whole = pair.startswith(alone[left]) and _BROKEN not in pair
        texts.append(pair[len(alone[left]) :] if whole else alone[number])
    return texts
