"""Recorded conversations of the reference healer: prompts fed and messages parsed."""

import json
from typing import Any

import numpy as np
import pytest

from sessions_app.rendering.protocol import Ids, Message
from tests.rendering.support import HEALING, array, healing_renderer

CHAT = "/v1/chat/completions"
RECORDED = {path.name: json.loads(path.read_text()) for path in sorted(HEALING.glob("*.json"))}


def files(engine: str) -> list[str]:
    return [name for name, recorded in RECORDED.items() if engine in recorded["runs"]]


def run_of(name: str, engine: str) -> tuple[str, dict[str, Any]]:
    return RECORDED[name]["template"], RECORDED[name]["runs"][engine]


def turns_of(run: dict[str, Any]) -> list[dict[str, Any]]:
    return [turn for turn in run["turns"] if turn["request"]["path"] == CHAT and "backend" in turn]


@pytest.mark.parametrize("name", files("linear_reset"))
def test_a_linear_conversation_is_fed_the_recorded_ids(name: str) -> None:
    template, run = run_of(name, "linear_reset")
    renderer = healing_renderer(template)
    served: Ids = array([])
    known: list[Message] = []
    tools: Any = None
    healed, healed_prefix = 0, 0
    for turn in run["turns"]:
        body, backend = turn["request"]["body"], turn["backend"]
        if turn["request"]["path"] != CHAT:
            served, known = array([*backend["prompt_ids"], *backend["output_ids"]]), []
            continue
        messages = body["messages"]
        if known and tools == body.get("tools"):
            extension = renderer.extend(served, known[-1], messages[len(known) :], tools)
            prompt = np.concatenate([served, extension.ids])
            healed, healed_prefix = healed + 1, healed_prefix + served.size + extension.glue.size
        else:
            prompt = renderer.render(messages, body.get("tools"))
        if known or not any(message["role"] == "assistant" for message in messages):
            assert prompt.tolist() == backend["prompt_ids"]
        reply = renderer.parse(array(backend["output_ids"]), body.get("tools")).message
        served, known, tools = (
            array([*backend["prompt_ids"], *backend["output_ids"]]),
            [*messages, reply],
            body.get("tools"),
        )
    if all(turn["request"]["path"] == CHAT for turn in run["turns"]):
        counters = run["healer_cumulative_counters"]
        assert healed == counters["healed_turns"]
        assert healed_prefix == counters["healed_prefix_tokens"]


@pytest.mark.parametrize("name", files("tree_forkonly"))
def test_a_re_rendered_conversation_is_fed_the_recorded_ids(name: str) -> None:
    template, run = run_of(name, "tree_forkonly")
    for turn in turns_of(run):
        body = turn["request"]["body"]
        ids = healing_renderer(template).render(body["messages"], body.get("tools"))
        assert ids.tolist() == turn["backend"]["prompt_ids"]


@pytest.mark.parametrize("name", files("linear_reset"))
def test_the_parsed_message_is_the_recorded_one(name: str) -> None:
    template, run = run_of(name, "linear_reset")
    for turn in turns_of(run):
        ids = array(turn["backend"]["output_ids"])
        parsed = healing_renderer(template).parse(ids, turn["request"]["body"].get("tools"))
        recorded = turn["response"]["body"]["choices"][0]["message"]
        assert not parsed.ill_formed
        assert comparable(parsed.message) == comparable(recorded)


def comparable(message: dict[str, Any]) -> dict[str, Any]:
    """Ids of calls are counters of the recording; the wire says null for an empty text."""
    calls = [call["function"] for call in message.get("tool_calls", [])]
    return {**message, "content": message["content"] or None, "tool_calls": calls}
