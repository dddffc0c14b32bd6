"""Recorded exchanges as forests: what the engine was fed and answered in a vector file, in commit order."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sessions_app.history.context import ROOT, context_digest
from sessions_app.packing import EMPTY_IDS, Ids
from trainer_export.samples.align import run_length
from trainer_export.samples.forest import path_ids, path_of
from trainer_export.samples.values import SessionForest, Turn

VECTORS = Path(__file__).parent.parent / "vectors" / "history"
TIMES = {"t0", "t1", "req_ts", "prev_t1"}


@dataclass
class Recorded:
    """The state of one recorded session at some line of its file."""

    policy: str
    turns: list[Turn] = field(default_factory=list)
    active: int | None = None

    def forest(self, **changes: Any) -> SessionForest:
        return replace(SessionForest("0" * 32, self.policy, tuple(self.turns), active=self.active), **changes)

    def commit(self, prompt: Ids, choice: dict[str, Any], parent: int | None, response_id: str) -> None:
        by_seq = {turn.seq: turn for turn in self.turns}
        held = EMPTY_IDS if parent is None else path_ids(path_of(by_seq, parent))
        shared = run_length(held, prompt)
        entries = choice["meta_info"]["output_token_logprobs"]
        delta, completion = prompt[shared:], np.array([entry[1] for entry in entries], dtype=np.int32)
        trim = held.size - shared
        above = ROOT if parent is None else by_seq[parent].context_digest
        self.active = len(self.turns)
        self.turns.append(
            Turn(
                seq=self.active,
                parent=parent,
                prompt_delta=delta,
                completion=completion,
                logprobs=np.array([entry[0] for entry in entries], dtype=np.float64),
                trim=trim,
                finish_reason=choice.get("finish_reason"),
                weight_version=choice["meta_info"].get("weight_version"),
                cached_tokens=choice["meta_info"].get("cached_tokens", 0),
                prompt_tokens=choice["meta_info"].get("prompt_tokens", 0),
                requested_at=float(10 * self.active),
                committed_at=float(10 * self.active + 5),
                response_id=response_id,
                context_digest=context_digest(above or ROOT, trim, delta, completion),
            )
        )


@dataclass(frozen=True)
class SamplesRow:
    """One recorded samples request with the session as it then was."""

    line: int
    note: str | None
    body: bytes
    response: dict[str, Any]
    recorded: Recorded


def samples_rows(name: str) -> Iterator[SamplesRow]:
    """The samples requests of a vector file."""
    lines = (VECTORS / name).read_text().splitlines()
    policy = {"v1": "rollback", "v2": "tree"}[json.loads(lines[0])["server"]["version"]]
    steps = [json.loads(line) for line in lines[1:]]
    recorded: dict[str, Recorded] = {}
    for number, step in enumerate(steps, start=2):
        path = step["request"]["path"]
        session = recorded.setdefault(path.split("/")[2], Recorded(policy)) if path != "/sessions" else None
        if path.endswith("/chat/completions") and _committed(step):
            _commit(session, step, _parents(steps, step))
        elif path.endswith("/samples"):
            snapshot = Recorded(policy, list(session.turns), session.active)
            yield SamplesRow(number, step.get("note"), _body(step["request"]), step["response"], snapshot)


def _committed(step: dict[str, Any]) -> bool:
    return step["response"]["status"] == 200


def _body(request: dict[str, Any]) -> bytes:
    return json.dumps(request["json"]).encode() if "json" in request else request["body_text"].encode()


def _parents(steps: list[dict[str, Any]], step: dict[str, Any]) -> dict[str, int | None]:
    """Response id to parent, as a later samples reply of the same session lists the tree."""
    sid = step["request"]["path"].split("/")[2]
    found: dict[str, int | None] = {}
    for other in steps:
        if other["request"]["path"] == f"/sessions/{sid}/samples" and "samples" in other["response"]:
            tree = other["response"]["samples"]["meta"]["session_metadata"].get("tree", {"nodes": []})
            found |= {node["response_id"]: node["parent"] for node in tree["nodes"]}
    return found


def _commit(session: Recorded, step: dict[str, Any], parents: dict[str, int | None]) -> None:
    prompt = np.array(step["upstream_request"][0]["json"]["input_ids"], dtype=np.int32)
    reply = step["upstream_reply"][0]["json"]
    parent = parents[reply["id"]] if session.policy == "tree" else _rolled_back(session, prompt)
    session.commit(prompt, reply["choices"][0], parent, reply.get("id", ""))


def _rolled_back(session: Recorded, prompt: Ids) -> int | None:
    """The deepest node of the active path whose ids the prompt repeats."""
    by_seq = {turn.seq: turn for turn in session.turns}
    at = session.active
    while at is not None:
        held = path_ids(path_of(by_seq, at))
        if run_length(held, prompt) == held.size:
            return at
        at = by_seq[at].parent
    return None


def without_times(value: Any) -> Any:
    """The same with every recorded time as `$TS`, as in the vectors."""
    if isinstance(value, dict):
        return {key: _without_time(key, item) for key, item in value.items()}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def _without_time(key: str, item: Any) -> Any:
    return "$TS" if key in TIMES and item is not None else without_times(item)
