"""Calls as chat conversations, whichever dialect recorded them: mode `better` of the messages adapter.

One conversation a call that succeeded and recorded messages, each call once however many spans saw it, in
order of time. Never raises for what spans hold.
"""

from collections.abc import Sequence
from typing import Any

from trainer_export.traces.attributes import unflatten
from trainer_export.traces.better.calls import Call, joined_calls
from trainer_export.traces.better.facts import facts_of
from trainer_export.traces.better.forest import Forest
from trainer_export.traces.better.reading import attempts, read_spans
from trainer_export.traces.better.report import Report
from trainer_export.traces.dialects.chat_messages import Chat, chat_messages
from trainer_export.traces.dialects.json_text import loaded
from trainer_export.traces.dialects.recognition import is_call
from trainer_export.traces.dialects.tools import tool_definitions
from trainer_export.traces.span import Attributes, Span

_TOOL = "tool."


def chats(source: Sequence[Any], llm_call_match: str) -> list[dict[str, Any]]:
    """`{"messages", "tools"}` of every call."""
    found = []
    for spans in attempts(read_spans(source).spans):
        report = Report((span.span_id, span.name) for span in spans)
        facts = [facts_of(span) for span in spans if is_call(span, llm_call_match)]
        calls = joined_calls(Forest(spans, report), facts, report)
        below = _tool_spans(spans)
        found += [chat for call in sorted(calls, key=_moment) if (chat := _chat(call, below))]
    return found


def _moment(call: Call) -> tuple[float, int, str]:
    return (float("inf") if call.start is None else call.start, call.sequence, call.span_id)


def _chat(call: Call, below: dict[str, list[Chat]]) -> dict[str, Any] | None:
    if call.failed:
        return None
    sent = _first(chat_messages(record.prompt, "user") for record in call.records)
    got = _first(chat_messages(record.response, "assistant") for record in call.records)
    if not sent and not got:
        return None
    made = [tool for record in call.records for tool in below.get(record.span.span_id, ())]
    if made:
        got = [one if "tool_calls" in one else {**one, "tool_calls": made} for one in got]
    told = _first(_instructions(record.span.attributes) for record in call.records)
    if told and not (sent and sent[0]["role"] in ("system", "developer")):
        sent = [*told, *sent]
    tools = _first(tool_definitions(record.span.attributes) or [] for record in call.records)
    return {"messages": [*sent, *got], "tools": tools or None}


def _first(candidates: Any) -> list[Any]:
    return next((found for found in candidates if found), [])


def _instructions(attributes: Attributes) -> list[Chat]:
    """A system prompt that is recorded beside the messages: its text, or its parts."""
    recorded = attributes.get("gen_ai.system_instructions")
    parts = loaded(recorded)
    if isinstance(parts, list):
        return chat_messages([{"parts": parts}], "system")
    return [{"role": "system", "content": recorded}] if isinstance(recorded, str) and recorded else []


def _tool_spans(spans: Sequence[Span]) -> dict[str, list[Chat]]:
    """Tool calls that are recorded as spans of their own, by the span of their call."""
    below: dict[str, list[Chat]] = {}
    for span in spans:
        made = _tool_call(span.attributes)
        if made is not None and span.parent_id is not None:
            below.setdefault(span.parent_id, []).append(made)
    return below


def _tool_call(attributes: Attributes) -> Chat | None:
    flat = {key[len(_TOOL) :]: value for key, value in attributes.items() if key.startswith(_TOOL)}
    nested = unflatten(flat)
    if not isinstance(nested, dict) or not isinstance(nested.get("call"), dict):
        return None
    named = {
        "name": nested.get("name"),
        "arguments": nested.get("parameters", "{}"),
        "id": nested["call"].get("id"),
    }
    calls = chat_messages([{"tool_calls": [named]}], "assistant")[0].get("tool_calls")
    return calls[0] if calls else None
