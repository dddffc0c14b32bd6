"""Span JSON -> spans in an order that does not depend on arrival; what cannot be read is reported, not
raised.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainer_export.traces.better.distinct import told_apart
from trainer_export.traces.better.report import Entry, Use
from trainer_export.traces.parsing import parse_span
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.span import Span

_MAX_SEGMENTS = 64


@dataclass(frozen=True, slots=True)
class Reading:
    """What one list of span objects holds."""

    spans: list[Span]
    """One per (rollout, attempt, trace id, span id), in canonical order; ids are unique within an attempt."""
    left_out: list[Entry]


def read_spans(source: Sequence[Any]) -> Reading:
    """Read every object by itself."""
    spans: list[Span] = []
    left_out: list[Entry] = []
    for position, item in enumerate(source):
        try:
            spans.append(_lenient(item, position))
        except ValidationError as error:
            left_out.append(
                Entry(_named(item, "span_id"), _named(item, "name"), Use.MALFORMED_SPAN, str(error))
            )
    kept, duplicates = _distinct(told_apart(spans))
    left_out += [Entry(span.span_id, span.name, Use.DUPLICATE_SPAN, span.span_id) for span in duplicates]
    return Reading(sorted(kept, key=_canonical), sorted(left_out, key=_entry_order))


def attempts(spans: Iterable[Span]) -> list[list[Span]]:
    """Spans by rollout and attempt, canonical order kept."""
    groups: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        groups.setdefault((span.rollout_id, span.attempt_id), []).append(span)
    return [groups[key] for key in sorted(groups)]


def _lenient(item: Any, position: int) -> Span:
    """Attributes are kept as they came: nested values are legal in today's protocol."""
    if isinstance(item, Span):
        return replace(item, parent_id=item.parent_id or None, attributes=_readable(item.attributes))
    if not isinstance(item, Mapping):
        raise ValidationError(f"spans[{position}]: Input should be an object, got {type(item).__name__}")
    bare = parse_span({key: value for key, value in item.items() if key != "attributes"}, position)
    return replace(bare, parent_id=bare.parent_id or None, attributes=_readable(item.get("attributes")))


def _readable(attributes: Any) -> dict[str, Any]:
    """Keys of absurdly many segments are left out: nested they would be deeper than can be written."""
    if not isinstance(attributes, Mapping):
        return {}
    return {key: value for key, value in attributes.items() if key.count(".") < _MAX_SEGMENTS}


def _distinct(spans: Iterable[Span]) -> tuple[list[Span], list[Span]]:
    """Of several records of one span the richest is kept; equally rich ones are told apart by their text."""
    by_id: dict[tuple[str, str, str], list[Span]] = {}
    for span in spans:
        by_id.setdefault((span.rollout_id, span.attempt_id, span.span_id), []).append(span)
    ranked = [sorted(group, key=_richness, reverse=True) for group in by_id.values()]
    return [group[0] for group in ranked], [span for group in ranked for span in group[1:]]


def _richness(span: Span) -> tuple[int, int, str]:
    return (len(span.attributes), int(span.end_time is not None), _text(span))


def _canonical(span: Span) -> tuple[Any, ...]:
    start = span.start_time
    unknown = start is None or math.isnan(start)
    return (
        span.rollout_id,
        span.attempt_id,
        span.sequence_id,
        unknown,
        0.0 if unknown else start,
        span.span_id,
    )


def _text(span: Span) -> str:
    facts = [span.name, span.parent_id, span.start_time, span.end_time, span.attributes]
    try:
        return json.dumps(facts, sort_keys=True, default=repr)
    except RecursionError:
        return ""


def _named(item: Any, key: str) -> str:
    value = item.get(key) if isinstance(item, Mapping) else None
    return value if isinstance(value, str) else ""


def _entry_order(entry: Entry) -> tuple[str, str, str, str]:
    return (entry.span_id, entry.name, str(entry.use), entry.detail)
