"""Our own nodes as calls of a trace: what an LLM proxy in front of the engine would have recorded. Pure.

Invariant: ids are those that the engine was fed and sampled, from the checkpoints.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

import numpy as np

from sessions_app.json_text import loads
from sessions_app.packing import Ids, Logprobs
from trainer_export.forests.rows import MessageRow, NodeRow, StoredSession
from trainer_export.traces.better.conversion import ServedTokens
from trainer_export.traces.proxy_calls import LITELLM_REQUEST
from trainer_export.traces.span import Span


@dataclass(frozen=True, slots=True)
class OwnCall:
    """One node."""

    session_id: str
    """32 hex digits."""
    seq: int
    """Of its node; negative for a reply that is in no tree."""
    response_id: str | None
    prompt: Ids
    """Every id fed."""
    completion: Ids
    logprobs: Logprobs
    agent: str | None
    finish_reason: str
    arrived_at: datetime
    committed_at: datetime
    messages: tuple[Any, ...]
    """Of the request, then the reply; () when they were not read."""
    late: str | None = None
    """Why the reply is in no tree; None for a node."""

    @property
    def tokens(self) -> ServedTokens:
        """As conversions take them."""
        return ServedTokens(
            self.prompt.tolist(), self.completion.tolist(), self.logprobs.tolist(), self.agent, self.late
        )


def own_calls(stored: StoredSession) -> list[OwnCall]:
    """The nodes of a session in commit order."""
    ids: dict[int, Ids] = {}
    prompts: dict[int, Ids] = {}
    messages = _messages(stored.messages, stored.nodes)
    for node in stored.nodes:
        before = ids[node.parent_seq] if node.parent_seq is not None else node.prompt_delta[:0]
        prompts[node.seq] = np.concatenate([before[: len(before) - node.trim], node.prompt_delta])
        ids[node.seq] = np.concatenate([prompts[node.seq], node.completion])
    return [_call(node, prompts[node.seq], messages.get(node.seq, ())) for node in stored.nodes]


def _call(node: NodeRow, prompt: Ids, messages: tuple[Any, ...]) -> OwnCall:
    return OwnCall(
        session_id=node.session_id.hex,
        seq=node.seq,
        response_id=node.response_id,
        prompt=prompt,
        completion=node.completion,
        logprobs=node.logprobs,
        agent=node.agent,
        finish_reason=node.finish_reason,
        arrived_at=node.arrived_at,
        committed_at=node.committed_at,
        messages=messages,
    )


def _messages(rows: Iterable[MessageRow], nodes: Sequence[NodeRow]) -> dict[int, tuple[Any, ...]]:
    """All messages of each node's path."""
    added: dict[int, list[Any]] = {}
    for row in rows:
        added.setdefault(row.node_seq, []).append(loads(row.body.encode("utf-8", "surrogatepass")))
    paths: dict[int, tuple[Any, ...]] = {}
    for node in nodes:
        before = paths.get(node.parent_seq, ()) if node.parent_seq is not None else ()
        paths[node.seq] = (*before, *added.get(node.seq, ()))
    return paths


def span_of(call: OwnCall, rollout_id: str, attempt_id: str) -> Span:
    """The span that a proxy would have written."""
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "prompt_token_ids": call.prompt.tolist(),
        "response_token_ids": call.completion.tolist(),
        "logprobs.content": call.logprobs.tolist(),
        "gen_ai.response.finish_reasons": [call.finish_reason],
    }
    if call.response_id is not None:
        attributes["gen_ai.response.id"] = call.response_id
    if call.messages:
        attributes["gen_ai.input.messages"] = list(call.messages[:-1])
        attributes["gen_ai.output.messages"] = list(call.messages[-1:])
    return Span(
        span_id=span_id_of(call.session_id, call.seq),
        parent_id=None,
        name=LITELLM_REQUEST,
        attributes=attributes,
        start_time=call.arrived_at.timestamp(),
        end_time=call.committed_at.timestamp(),
        trace_id=call.session_id,
        rollout_id=rollout_id,
        attempt_id=attempt_id,
    )


def span_id_of(session_id: str, seq: int) -> str:
    """The same at every conversion, and none that a tracer would choose."""
    return blake2b(f"{session_id}:{seq}".encode(), digest_size=8).hexdigest()
