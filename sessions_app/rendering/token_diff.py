"""The first place where two rows of ids differ, for people to read."""

from collections.abc import Callable, Sequence

_AROUND = 3
"""Tokens shown on either side of the first difference."""


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
    return f"at token {at} after {shared}: fed {ours}, fresh render {theirs}"


def _shown(ids: Sequence[int], decode: Callable[[Sequence[int]], str]) -> str:
    return " ".join(f"{number}{decode([number])!r}" for number in ids) or "nothing"
