"""Where the served ids differ from a fresh render of the same messages, and of what kind the difference is.

Pure. `assistant_text` is tolerated (what the model sampled is kept as sampled); the other kinds are
defects. Ids may differ freely inside a segment as long as they spell the same text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PREFIX_IDS = 20
"""Ids of a content segment that are read to tell whether an assistant speaks."""

Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class ComparisonRules:
    """What a family says about comparing."""

    special_ids: frozenset[int]
    """Ids that stand alone as segments."""
    trailing_ids: frozenset[int]
    """Ids ignored at both tails."""
    assistant_prefix: str
    """Text with which an assistant segment starts; "" = none is classed as assistant text."""
    closers: frozenset[int] = frozenset()
    """Ids that close a turn, one as good as another: the last turn may be closed by another than the rest."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference."""

    type: str
    """special_token_count, special_token_type, assistant_text or non_assistant_text."""
    segment_index: int
    """-1 when the segments do not correspond at all."""
    expected_text: str
    actual_text: str
    detail: str

    def as_json(self) -> dict[str, str | int]:
        """The shape that clients of the session server read, keys in this order."""
        return {
            "type": self.type,
            "segment_index": self.segment_index,
            "expected_text": self.expected_text,
            "actual_text": self.actual_text,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class _Segment:
    special: bool
    ids: tuple[int, ...]


def compare(
    expected: Sequence[int], actual: Sequence[int], rules: ComparisonRules, decode: Decode
) -> list[Mismatch]:
    """All differences between a render and the served ids, in order; [] when they say the same."""
    expected, actual = _stripped(expected, rules), _stripped(actual, rules)
    if expected == actual:
        return []
    wanted, found = _segments(expected, rules), _segments(actual, rules)
    if len(wanted) != len(found):
        return [
            _structural(
                wanted, found, f"segment count differs: expected {len(wanted)}, got {len(found)}", decode
            )
        ]
    if [segment.special for segment in wanted] != [segment.special for segment in found]:
        return [_structural(wanted, found, "segment structure (special/content pattern) differs", decode)]
    pairs = enumerate(zip(wanted, found, strict=True))
    return [
        Mismatch(_kind(wanted, found, index, rules, decode), index, decode(want.ids), decode(have.ids), "")
        for index, (want, have) in pairs
        if _differs(want, have, rules, decode)
    ]


def _stripped(ids: Sequence[int], rules: ComparisonRules) -> Sequence[int]:
    end = len(ids)
    while end and ids[end - 1] in rules.trailing_ids:
        end -= 1
    return ids[:end]


def _segments(ids: Sequence[int], rules: ComparisonRules) -> list[_Segment]:
    segments: list[_Segment] = []
    run: list[int] = []
    for number in ids:
        if number not in rules.special_ids:
            run.append(int(number))
            continue
        if run:
            segments.append(_Segment(False, tuple(run)))
            run = []
        segments.append(_Segment(True, (int(number),)))
    return [*segments, _Segment(False, tuple(run))] if run else segments


def _differs(want: _Segment, have: _Segment, rules: ComparisonRules, decode: Decode) -> bool:
    if want.ids == have.ids or {*want.ids, *have.ids} <= rules.closers:
        return False
    return want.special or decode(want.ids) != decode(have.ids)


def _kind(
    wanted: list[_Segment], found: list[_Segment], index: int, rules: ComparisonRules, decode: Decode
) -> str:
    if wanted[index].special:
        return "special_token_type"
    spoken = all(_is_assistant(segments, index, rules, decode) for segments in (wanted, found))
    return "assistant_text" if spoken else "non_assistant_text"


def _is_assistant(segments: list[_Segment], index: int, rules: ComparisonRules, decode: Decode) -> bool:
    if not rules.assistant_prefix or index == 0 or not segments[index - 1].special:
        return False
    opening = decode(segments[index - 1].ids) + decode(segments[index].ids[:_PREFIX_IDS])
    return opening.startswith(rules.assistant_prefix)


def _structural(wanted: list[_Segment], found: list[_Segment], detail: str, decode: Decode) -> Mismatch:
    return Mismatch("special_token_count", -1, _structure(wanted, decode), _structure(found, decode), detail)


def _structure(segments: list[_Segment], decode: Decode) -> str:
    return " ".join(
        f"[{decode(segment.ids)}]" if segment.special else f"({len(segment.ids)} tokens)"
        for segment in segments
    )
