"""Id sequences laid beside each other: runs that are equal in all of them, and what stands between. Pure.

The first sequence is the measure. Sequences of 100,000 ids that differ here and there take a moment: what
is equal at both ends is set aside first, long rests are compared stretch by stretch between the ids that
stand alone.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from sessions_app.packing import Ids

_SMALL = 1_000_000
"""Rests whose lengths multiply to less are compared id by id."""


@dataclass(frozen=True, slots=True)
class Match:
    """Equal ids of two sequences."""

    first: int
    """Where they begin in the first one."""
    other: int
    length: int


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of every sequence: equal ids, or what stands between two equal stretches."""

    equal: bool
    bounds: tuple[tuple[int, int], ...]
    """Start and end in each sequence."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """Ids that are equal in all sequences looked at so far."""

    starts: tuple[int, ...]
    """Where they begin in each."""
    length: int


def align(lanes: Sequence[Ids], separators: Set[int]) -> list[Block]:
    """Blocks that cover every sequence from end to end. `separators`: ids that stand alone."""
    first, *others = lanes
    shared = [_Shared((0,), len(first))] if len(first) else []
    for other in others:
        shared = list(_intersection(shared, matches(first, other, separators)))
    return list(_blocks([len(lane) for lane in lanes], shared))


def matches(first: Ids, other: Ids, separators: Set[int]) -> list[Match]:
    """Equal stretches of two sequences in order."""
    return _joined(_matches(first, other, 0, 0, separators))


def _matches(first: Ids, other: Ids, at: int, there: int, separators: Set[int]) -> Iterator[Match]:
    head = _common_head(first, other)
    tail = _common_head(first[head:][::-1], other[head:][::-1])
    if head:
        yield Match(at, there, head)
    rest, rest_other = first[head : len(first) - tail], other[head : len(other) - tail]
    if rest.size and rest_other.size:
        compared = _by_id if rest.size * rest_other.size < _SMALL else _by_stretch
        yield from compared(rest, rest_other, at + head, there + head, separators)
    if tail:
        yield Match(at + len(first) - tail, there + len(other) - tail, tail)


def _common_head(first: Ids, other: Ids) -> int:
    length = min(len(first), len(other))
    different = np.flatnonzero(first[:length] != other[:length])
    return int(different[0]) if different.size else length


def _by_id(first: Ids, other: Ids, at: int, there: int, separators: Set[int]) -> Iterator[Match]:
    matcher = SequenceMatcher(None, first.tolist(), other.tolist(), autojunk=False)
    for a, b, length in matcher.get_matching_blocks():
        if length:
            yield Match(at + a, there + b, length)


def _by_stretch(first: Ids, other: Ids, at: int, there: int, separators: Set[int]) -> Iterator[Match]:
    """Stretches between separators as units; unequal ones that face each other are looked into."""
    starts, starts_other = _stretches(first, separators), _stretches(other, separators)
    units, units_other = _units(first, starts), _units(other, starts_other)
    matcher = SequenceMatcher(None, units, units_other, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            yield Match(at + starts[a], there + starts_other[b], starts[a_end] - starts[a])
        elif tag == "replace":
            faced = min(a_end - a, b_end - b)
            for one, two in zip(range(a, a + faced), range(b, b + faced), strict=True):
                piece = first[starts[one] : starts[one + 1]]
                piece_other = other[starts_other[two] : starts_other[two + 1]]
                if piece.size * piece_other.size < _SMALL:
                    found = _matches(
                        piece, piece_other, at + starts[one], there + starts_other[two], separators
                    )
                    yield from found


def _stretches(ids: Ids, separators: Set[int]) -> list[int]:
    """Where stretches begin, and the end."""
    marks = np.flatnonzero(np.isin(ids, list(separators)))
    edges = {0, len(ids), *marks.tolist(), *(marks + 1).tolist()}
    return sorted(edges)


def _units(ids: Ids, starts: Sequence[int]) -> list[bytes]:
    return [ids[start:end].tobytes() for start, end in pairwise(starts)]


def _joined(found: Iterator[Match]) -> list[Match]:
    """Neighbouring matches as one."""
    joined: list[Match] = []
    for match in found:
        last = joined[-1] if joined else None
        if last and last.first + last.length == match.first and last.other + last.length == match.other:
            joined[-1] = Match(last.first, last.other, last.length + match.length)
        else:
            joined.append(match)
    return joined


def _intersection(shared: Sequence[_Shared], found: Sequence[Match]) -> Iterator[_Shared]:
    """What is shared so far and in the new sequence too; both lists run along the first sequence."""
    one = two = 0
    while one < len(shared) and two < len(found):
        a, b = shared[one], found[two]
        ends = a.starts[0] + a.length, b.first + b.length
        start = max(a.starts[0], b.first)
        if start < min(ends):
            ahead = start - a.starts[0]
            starts = (*(place + ahead for place in a.starts), b.other + start - b.first)
            yield _Shared(starts, min(ends) - start)
        if ends[0] < ends[1]:
            one += 1
        else:
            two += 1


def _blocks(lengths: Sequence[int], shared: Sequence[_Shared]) -> Iterator[Block]:
    at = tuple(0 for _ in lengths)
    for run in shared:
        yield from _between(at, run.starts)
        at = tuple(start + run.length for start in run.starts)
        yield Block(True, tuple(zip(run.starts, at, strict=True)))
    yield from _between(at, tuple(lengths))


def _between(starts: tuple[int, ...], ends: tuple[int, ...]) -> Iterator[Block]:
    if starts != ends:
        yield Block(False, tuple(zip(starts, ends, strict=True)))
