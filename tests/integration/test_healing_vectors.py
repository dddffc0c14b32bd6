"""Recorded conversations of the reference gateway, played against ours over HTTP.

Bound are the prompt ids fed, the parsed replies in their protocol's shape, and the healer's counters; the
samples are the gateway's records. Ids of replies and calls, and the time of a reply, are counters of the
recording.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.fakes.engine import FakeEngine, Reply
from tests.harness import running_server

VECTORS = Path(__file__).parent.parent / "vectors" / "healing"
TEMPLATES: dict[str, str] = json.loads((VECTORS / "assets/chat_templates.json").read_text())
RECORDED = {path.stem: json.loads(path.read_text()) for path in sorted(VECTORS.glob("*.json"))}
RUNS = [(name, engine) for name, recorded in RECORDED.items() for engine in recorded["runs"]]
MODES = {
    "linear_reset": {"TITO_HISTORY_POLICY": "linear", "TITO_ON_NONLINEAR": "reset"},
    "tree_forkonly": {"TITO_HEALING": "off"},
}
ZEROS = {"healed_turns": 0, "healed_prefix_tokens": 0, "nonlinear": 0, "close_unresolved": 0}


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with FakeEngine() as engine:
        yield engine


def environment(tmp_path: Path, template: str, mode: str, engine: FakeEngine) -> dict[str, str]:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    (folder / "tokenizer.json").write_bytes((VECTORS / "assets/toy_tokenizer.json").read_bytes())
    (tmp_path / "template.jinja").write_text(TEMPLATES[template])
    return {
        "TITO_MODEL": str(folder),
        "TITO_CHAT_TEMPLATE": str(tmp_path / "template.jinja"),
        "TITO_RENDERER": "template",
        "TITO_TOOL_PARSER": "qwen3",
        "TITO_REASONING_PARSER": "think",
        "TITO_BACKEND": "sglang-generate",
        "TITO_BACKEND_URL": engine.url,
        "TITO_AUTO_SESSIONS": "true",
        **MODES[mode],
    }


@pytest.mark.parametrize(("name", "mode"), RUNS)
def test_recorded_turns_are_served_alike(name: str, mode: str, tmp_path: Path, engine: FakeEngine) -> None:
    recorded = RECORDED[name]
    run = recorded["runs"][mode]
    with (
        running_server(environment(tmp_path, recorded["template"], mode, engine)) as url,
        httpx.Client(base_url=url) as client,
    ):
        session, key = "", uuid4().hex[:12]
        for turn in run["turns"]:
            response = play(client, engine, turn, key)
            session = response.headers.get("X-Tito-Session", session)
        metadata = client.get(f"/sessions/{session}").json()["metadata"]
        asked = client.post(f"/sessions/{session}/samples", json={}, headers={"Accept": "application/json"})
        samples = asked.json()["samples"]
    if mode == "linear_reset":
        assert metadata["linear_healer"] == ZEROS | run["healer_cumulative_counters"]
    records = run["finished"][0]["records"]
    assert len(metadata["tree"]["leaves"]) == len(records)
    assert [trained(sample) for sample in samples] == [
        (one["token_ids"], one["loss_mask"], one["logprobs"], one["response"]) for one in records
    ]


def play(client: httpx.Client, engine: FakeEngine, turn: dict[str, Any], key: str) -> httpx.Response:
    """One turn, compared with what was recorded of it. All recordings use the key `s`."""
    request, backend, wanted = turn["request"], turn.get("backend"), turn["response"]
    if backend is not None:
        finish = backend["finish_reason"]
        engine.script(Reply(ids=backend["output_ids"], logprobs=backend["output_logprobs"], finish=finish))
    headers = {name: f"{value[:-1]}{key}" for name, value in request["headers"].items()}
    response = client.post(request["path"], headers=headers, json=request["body"])
    assert response.status_code == wanted["status"], response.text
    assert response.headers["content-type"].startswith(wanted["content_type"])
    if backend is not None:
        assert engine.bodies[-1]["input_ids"] == backend["prompt_ids"]
        assert backend["sampling_params"].items() <= engine.bodies[-1]["sampling_params"].items()
    if request["path"].endswith("count_tokens"):
        assert response.json()["input_tokens"] > 0
    elif "body" in wanted:
        assert comparable(response.json()) == comparable(wanted["body"])
    else:
        assert assembled(response.text) == assembled(wanted["text"])
    return response


def trained(sample: dict[str, Any]) -> tuple[Any, ...]:
    """What a trainer computes on, in the order of a record."""
    logprobs = [round(value, 4) for value in sample["rollout_log_probs"]]
    return sample["tokens"], sample["loss_mask"], logprobs, sample["response"]


def comparable(value: Any) -> Any:
    """Without what only counts up."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if key not in ("id", "created")}
    return [comparable(each) for each in value] if isinstance(value, list) else value


def assembled(stream: str) -> dict[str, Any]:
    """What a client makes of a stream."""
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]
    return anthropic_message(events) if "event: " in stream else openai_message(events)


def openai_message(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": None, "content": "", "reasoning_content": "", "tool_calls": []}
    for chunk in chunks:
        delta = chunk["choices"][0]["delta"]
        message["role"] = delta.get("role") or message["role"]
        for name in ("content", "reasoning_content", "tool_calls"):
            message[name] += delta.get(name) or type(message[name])()
    last = chunks[-1]
    return comparable(
        {"message": message, "usage": last["usage"], "finish": last["choices"][0]["finish_reason"]}
    )


def anthropic_message(events: list[dict[str, Any]]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    shape = [event["type"] for event in events if not is_signature(event)]
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
            blocks[-1].pop("signature", None)
        elif event["type"] == "content_block_delta" and not is_signature(event):
            delta = event["delta"]
            for name, into in (("text", "text"), ("thinking", "thinking"), ("partial_json", "json")):
                if name in delta:
                    blocks[event["index"]][into] += delta[name]
    stop = next(event for event in events if event["type"] == "message_delta")
    return comparable({"shape": shape, "blocks": blocks, "stop": stop})


def is_signature(event: dict[str, Any]) -> bool:
    """The recording has none."""
    return event.get("delta", {}).get("type") == "signature_delta"
