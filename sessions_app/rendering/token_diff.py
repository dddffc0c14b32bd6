"""The first place where two rows of ids differ, for people to read."""

from collections.abc import Callable, Sequence

_AROUND = 3
"""Tokens shown on either side of the first difference."""
_FED, _FRESH = ": fed ", ", fresh render "


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Index of the first differing id; None when they are equal."""
    pairs = enumerate(zip(left, right, strict=False))
    shared = next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
    return None if shared == len(left) == len(right) else shared


def token_diff(fed: Sequence[int], fresh: Sequence[int], decode: Callable[[Sequence[int]], str]) -> str:
    """One line: where they part, the last shared tokens, and how each goes on; "" when they are equal."""
    at = first_difference(fed, fresh)
    if at is None:
        return ""
    shared, ours, theirs = (
        _shown(ids, decode)
        for ids in (fed[max(0, at - _AROUND) : at], fed[at : at + _AROUND], fresh[at : at + _AROUND])
    )
    return f"at token {at} after {shared}{_FED}{ours}{_FRESH}{theirs}"


def on_lines(text: str) -> list[str]:
    """A text that ends with a token diff, the two rows of tokens on lines of their own, one below the other;
    any other text as it is."""
    before, found, fresh = text.rpartition(_FRESH)
    where, fed_found, fed = before.rpartition(_FED)
    if not (found and fed_found):
        return [text]
    return [where, f"  fed           {fed}", f"  fresh render  {fresh}"]


def _shown(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> str:
    return " ".join(f"{number}{decode([number])!r}" for number in ids) or "nothing"
