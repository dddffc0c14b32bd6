"""Tree, repair, selection and rewards of a tracer's spans."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.traces.oracle.nested import first_string, unflatten

Json = dict[str, Any]


@dataclass(eq=False)
class Knot:
    id: str
    name: str
    attributes: Json
    start: Any
    end: Any
    below: list["Knot"] = field(default_factory=list)


def grown(spans: list[Json]) -> Knot:
    if not spans:
        raise ValueError("No spans provided to create TraceTree.")
    payload = {span["span_id"]: span for span in spans}
    roots = [span["span_id"] for span in spans if span["parent_id"] is None]
    for span in spans:
        parent = span["parent_id"]
        if parent is not None and parent not in payload and parent not in roots:
            roots.append(parent)
    if not roots:
        raise ValueError("No root spans found in the trace.")
    knots = [_knot(root, payload, spans, ()) for root in roots]
    if len(knots) == 1:
        return knots[0]
    return Knot("virtual-root", "virtual-root", {}, knots[0].start, knots[-1].end, knots)


def _knot(key: str, payload: dict[str, Json], spans: list[Json], above: tuple[str, ...]) -> Knot:
    if key in above:
        raise RecursionError
    children = [
        _knot(span["span_id"], payload, spans, (*above, key)) for span in spans if span["parent_id"] == key
    ]
    if key in payload:
        span = payload[key]
        return Knot(key, span["name"], span["attributes"], span["start_time"], span["end_time"], children)
    start, end = min(knot.start for knot in children), max(knot.end for knot in children)
    return Knot(key, "agentlightning.virtual", {}, start, end, children)


def walk(knot: Knot) -> list[Knot]:
    return [knot, *(deeper for child in knot.below for deeper in walk(child))]


def repaired(root: Knot) -> Knot:
    top = root
    while len(top.below) == 1:
        top = top.below[0]
    for child in list(top.below):
        if len(top.below) == 1:
            break
        best, least = None, float("inf")
        for other in walk(top):
            if other is top or other is child:
                continue
            if other.start <= child.start and other.end >= child.end:
                slack = (other.end - child.end) + (child.start - other.start)
                if 0 < slack < least:
                    best, least = other, slack
        if best is not None:
            top.below.remove(child)
            best.below.append(child)
    return root


def agent_of(knot: Knot) -> Any:
    found = knot.attributes
    if "agent.name" in found:
        return found["agent.name"]
    if found.get("agentops.span.kind") == "agent" and "operation.name" in found:
        return found["operation.name"]
    for key in ("recipient_agent_type", "langchain.chain.type", "executor.id"):
        if key in found:
            return found[key]
    if found.get("type") == "agent" and "agentlightning.operation.input.name" in found:
        return found["agentlightning.operation.input.name"]
    return found.get("lc_name") if knot.name.startswith("langchain.Chain.") else None


def reward_of(name: str, attributes: Json) -> Any:
    if any(key.startswith("agentlightning.reward") for key in attributes):
        dimensions = unflatten(attributes, "agentlightning.reward")
        if not isinstance(dimensions, list):
            raise ValueError("not a list")
        values = [(_text(item["name"]), float(item["value"])) for item in map(_object, dimensions)]
        return values[0][1]
    for key in ("agentops.task.output", "agentops.entity.output"):
        try:
            output = json.loads(attributes.get(key, "null"))
        except ValueError:
            continue
        if output and output.get("type") == "reward":
            return output.get("value")
    return attributes.get("reward") if name == "agentlightning.annotation" else None


def _object(item: Any) -> Json:
    if not isinstance(item, dict) or not {"name", "value"} <= item.keys():
        raise ValueError("not a dimension")
    return item


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not text")
    return value


def selected(root: Knot, options: Json) -> list[tuple[Knot, Any]]:
    found: list[tuple[Knot, Any]] = []
    seen: set[str] = set()
    pattern = options.get("llm_call_match", r"openai\.chat\.completion")
    wanted = options.get("agent_match")
    excludes = options.get("exclude_llm_call_in_reward", True)
    dedup = options.get("dedup_llm_call", True)

    def visit(knot: Knot, label: Any, in_reward: bool, in_call: bool) -> None:
        is_call = label is not None and not in_reward and re.search(pattern, knot.name) is not None
        told = first_string(knot.attributes, "gen_ai.response.id", "agentlightning.operation.output.id")
        if is_call and ((told is None and in_call) or (told is not None and told in seen)):
            is_call = False
        if is_call:
            found.append((knot, label))
            if told is not None:
                seen.add(told)
        name = agent_of(knot)
        if name is not None:
            label = name if wanted is None or re.search(wanted, name) else None
        if excludes and _is_reward(knot):
            in_reward = True
        for child in knot.below:
            visit(child, label, in_reward, in_call or (dedup and is_call))

    visit(root, "*" if wanted is None else None, False, False)
    return found


def _is_reward(knot: Knot) -> bool:
    says_so = knot.attributes.get("agentlightning.operation.name") == "agentlightning.reward"
    named = knot.name == "agentlightning.operation"
    return reward_of(knot.name, knot.attributes) is not None or (named and says_so)


def rewarded(root: Knot, policy: str, calls: set[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}

    def match(order: list[Knot]) -> None:
        before: list[Knot] = []
        for knot in order:
            if knot.id in calls:
                before.append(knot)
            value = reward_of(knot.name, knot.attributes)
            if value is None:
                continue
            for call in reversed(before):
                if call.end <= knot.start and call.id not in given:
                    given[call.id] = value
                    break

    if policy == "first_occurrence":
        match(sorted(walk(root), key=lambda knot: knot.start))
    elif policy == "first_sibling":
        for knot in walk(root):
            match(knot.below)
    return given
