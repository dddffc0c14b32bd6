"""Why a turn does not continue the one before: three classes, of which several can hold at once.

`template`: the special tokens differ. `retoken`: the text continues, its tokens differ. `others`: the text
differs. The last two exclude each other; none holds when only the number of special tokens differs.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from trainer_export.traces.rows.prefix import first_difference, starts_with


class TokenText(Protocol):
    """What has to be known of a tokenizer."""

    special_ids: Collection[int]

    def text(self, ids: Sequence[int]) -> str:
        """Decoded, special tokens left out."""
        ...


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A break between two turns."""

    template_mismatch: bool
    retoken_mismatch: bool
    others_mismatch: bool
    position: int
    """Index of the first token that differs."""


def classify(ids: Sequence[int], context: Sequence[int], tokens: TokenText) -> Mismatch | None:
    """None when `ids` starts with `context`."""
    position = first_difference(ids, context)
    if position is None:
        return None
    special = frozenset(tokens.special_ids)
    pairs = zip(_kept(ids, special), _kept(context, special), strict=False)
    rest, rest_before = _left_out(ids, special), _left_out(context, special)
    same_tokens = starts_with(rest, rest_before)
    same_text = tokens.text(ids).startswith(tokens.text(context))
    return Mismatch(
        template_mismatch=any(ours != theirs for ours, theirs in pairs),
        retoken_mismatch=not same_tokens and same_text,
        others_mismatch=not same_tokens and not same_text,
        position=position,
    )


def _kept(ids: Sequence[int], special: frozenset[int]) -> list[int]:
    return [token for token in ids if token in special]


def _left_out(ids: Sequence[int], special: frozenset[int]) -> list[int]:
    return [token for token in ids if token not in special]
