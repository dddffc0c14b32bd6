"""One conversation per span that recorded a prompt, a completion, a request or a response, in list order.

Mode `better` reads every dialect, and each call once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer_export.traces.adapters.better import BETTER, COMPAT, is_better
from trainer_export.traces.adapters.options import read_options
from trainer_export.traces.adapters.registry import SPANS, adapter
from trainer_export.traces.better.chats import chats
from trainer_export.traces.conversations import RecordedCall, conversation
from trainer_export.traces.grouping import grouped_under
from trainer_export.traces.parsing import parse_spans
from trainer_export.traces.reference import ValidationError
from trainer_export.traces.selection import DEFAULT_CALL_PATTERN
from trainer_export.traces.span import Span

NAME = "TraceToMessages"

_BETTER = {"mode": BETTER, "llm_call_match": DEFAULT_CALL_PATTERN}


@adapter(NAME, SPANS)
def convert(source: Any, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Conversations; every span is read before the first one is built."""
    if is_better(options):
        return _better(source, read_options(NAME, options, _BETTER))
    read_options(NAME, options, {"mode": COMPAT})
    spans = parse_spans(source)
    children: dict[str | None, list[Span]] = {}
    for span in spans:
        children.setdefault(span.parent_id, []).append(span)
    calls = [_recorded(span, children.get(span.span_id, ())) for span in spans]
    return [conversation(call) for call in calls if call is not None]


def _better(source: Any, chosen: Mapping[str, Any]) -> list[dict[str, Any]]:
    if not isinstance(source, list):
        raise ValidationError(f"spans: Input should be a valid list, got {type(source).__name__}")
    return chats(source, chosen["llm_call_match"])


def _recorded(span: Span, children: Sequence[Span]) -> RecordedCall | None:
    prompt = _listed(span, "prompt")
    completion = _listed(span, "completion")
    request = _keyed(span, "request")
    response = _keyed(span, "response")
    if not (prompt or completion or request or response):
        return None
    tool_calls = [call for child in children if (call := _tool_call(child))]
    return RecordedCall(prompt, completion, request, tool_calls)


def _listed(span: Span, part: str) -> list[Any]:
    value = grouped_under(span.attributes, f"gen_ai.{part}") or []
    if not isinstance(value, list):
        raise ValueError(f"Extracted {part} from trace is not a list: {value}")
    return value


def _keyed(span: Span, part: str) -> dict[str, Any]:
    value = grouped_under(span.attributes, f"gen_ai.{part}") or {}
    if not isinstance(value, dict):
        raise ValueError(f"Extracted {part} from trace is not a dict: {value}")
    return value


def _tool_call(child: Span) -> dict[str, Any]:
    value = grouped_under(child.attributes, "tool")
    if not isinstance(value, dict):
        raise ValueError(f"Extracted tool call from trace is not a dict: {value}")
    return value
