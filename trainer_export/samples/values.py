"""What samples are made of: one session's forest as plain values, in commit order.

Not here: where the values come from. Everything is frozen; arrays are never written to. Invariant of the
store that all of this relies on: a node's ids are its parent's ids minus `trim`, then `prompt_delta`, then
`completion`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sessions_app.packing import Ids, Logprobs

JsonObject = dict[str, Any]


class Status(StrEnum):
    """What became of a sample, in the words trainers read."""

    PENDING = "pending"
    COMPLETED = "completed"
    TRUNCATED = "truncated"
    ABORTED = "aborted"


_STATUSES = {
    "stop": Status.COMPLETED,
    "tool_calls": Status.COMPLETED,
    "length": Status.TRUNCATED,
    "abort": Status.ABORTED,
}


@dataclass(frozen=True, slots=True)
class Reward:
    """One reported reward. Which node or session it belongs to is said by who holds it."""

    name: str
    value: float
    weight: float = 1.0
    source: str = "api"


@dataclass(frozen=True, slots=True)
class Speculative:
    """Counters of speculative decoding; summed over the turns of a sample."""

    accepted: int = 0
    """`spec_accept_token_num`"""
    drafted: int = 0
    """`spec_draft_token_num`"""
    verifications: int = 0
    """`spec_verify_ct`"""
    completion_tokens: int = 0

    def __add__(self, other: "Speculative") -> "Speculative":
        return Speculative(
            self.accepted + other.accepted,
            self.drafted + other.drafted,
            self.verifications + other.verifications,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Payload:
    """Packed replay rows of one turn, little-endian int32. Most turns need no more than the size."""

    size: int
    """Bytes of the whole."""
    parts: tuple[bytes, ...] = ()
    """The whole, cut anywhere; empty where it was not read."""

    @classmethod
    def of(cls, data: bytes) -> "Payload":
        """A payload that was read."""
        return cls(len(data), (data,))


class CutContinuation(StrEnum):
    """How a turn continues a parent that was cut by length."""

    NONE = ""
    """The parent was not cut."""
    CLOSE = "close"
    """After the template's own close, which is prompt and masked: the sample goes on."""
    JOIN = "join"
    """Plainly, without a close: the sample ends at the cut."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One node of the forest with what its request and its reply said."""

    seq: int
    """Commit order in the session, from 0; the node's public id."""
    parent: int | None
    """The parent's seq; None for a root."""
    prompt_delta: Ids
    """Fed in this turn beyond the parent's ids; the whole prompt of a root."""
    completion: Ids
    logprobs: Logprobs
    """One per completion id."""
    trim: int = 0
    """Ids dropped from the end of the parent's before the prompt delta."""
    finish_reason: str | None = "stop"
    """As stored; None where the engine said null."""
    weight_version: Any = None
    """As the engine reported it with the reply; None = not reported."""
    weight_version_dispatch: str | None = None
    """What the server believed the engine to hold when it sent the prompt."""
    cached_tokens: int = 0
    """Prompt ids the engine found in its prefix cache; 0 also where it said nothing."""
    prompt_tokens: int = 0
    """As reported by the engine; 0 also where it said nothing."""
    engine_seconds: float | None = None
    """`e2e_latency` as reported."""
    requested_at: float | None = None
    """Arrival of the request, epoch seconds."""
    committed_at: float = 0.0
    """Commit of the reply, epoch seconds."""
    response_id: str | None = ""
    after_seq: int | None = None
    """Latest answer to the same request that prepare saw committed, by seq; -1 = none;
    None = not known, the times decide."""
    cut_continuation: CutContinuation = CutContinuation.NONE
    continues: int | None = None
    """Of a root that was not healed: seq of the node whose messages it continues though its ids do not."""
    realigns: bool = False
    """Made by `reconcile` only: the prompt delta stands in place of the parent's whole completion."""
    routed_experts: Payload | None = None
    """None = no payload; one of size 0 is one."""
    routed_experts_start: int | None = None
    """`routed_experts_start_len` of the request (additional R3); None = not asked for."""
    indexer_topk: Payload | None = None
    indexer_layers: int | None = None
    """`indexer_topk_num_layers` as reported."""
    speculative: Speculative | None = None
    """None = the engine reported none."""
    request_digest: bytes | None = None
    """Equal for requests with the same messages, tools and head; sampling may differ. None = equal to no
    other."""
    root_class: str | None = None
    """`main`, `subagent`, `side`, `compaction` …; only read at the root of a path."""
    agent: str = ""
    """Label of the agent that sent the request; "" = unknown."""
    context_digest: bytes | None = None
    """As stored at commit (`sessions_app.history.context`); None = never computed, so nothing can be proven.
    """
    messages_json: str | None = None
    """JSON list: the request's messages as sent, then the reply. Only loaded where TITO_DEBUG_MESSAGES asks
    for it."""
    rewards: tuple[Reward, ...] = ()

    @property
    def status(self) -> Status:
        """What a sample that ends here is."""
        return _STATUSES.get(self.finish_reason or "", Status.PENDING)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A root-to-leaf path: one raw sample."""

    turns: tuple[Turn, ...]
    """Root first, never empty."""
    accumulated_ids: Ids
    """The leaf's checkpoint: all ids of the path."""
    later_siblings: tuple[Turn, ...] = ()
    """Children of the last turn's parent (or roots, for a root) committed after it."""

    @property
    def last(self) -> Turn:
        """The leaf's own node."""
        return self.turns[-1]


def history_metadata(healer: Mapping[str, int], causes: Mapping[str, Mapping[str, int]]) -> JsonObject:
    """What the metadata of every exported row says of its session's history."""
    return {
        "linear_healer": dict(healer),
        "history_causes": {kind: dict(counted) for kind, counted in causes.items()},
    }


@dataclass(frozen=True, slots=True)
class SessionForest:
    """Everything of one session that its samples depend on."""

    session_id: str
    """32 hex digits."""
    policy: str
    """`rollback`, `tree` or `linear`."""
    turns: tuple[Turn, ...]
    """Every node in commit order."""
    active: int | None = None
    """Seq of the active path's last node; what `rollback` exports."""
    metadata: JsonObject = field(default_factory=dict)
    """`metadata` of GET /sessions/{id}, in its order; copied before hooks see it."""
    mismatches: Mapping[int, Any] = field(default_factory=dict)
    """`tito_session_mismatch` by leaf seq; a leaf for which it could not be computed is absent."""
    healed: bool = True
    """False: every turn was rendered from the client's messages (`healing=false`, or after a passthrough)."""
    healer: Mapping[str, int] | None = None
    """The four `linear_healer` counters."""
    causes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How often turns attached by fork, retry, rollback, reset or passthrough, by cause."""
    finish_metadata: JsonObject = field(default_factory=dict)
    """What `finish` was given; rides on every sample."""
    rewards: tuple[Reward, ...] = ()
    """Rewards of the session as a whole."""
    rollout_id: str | None = None
    """None: the session is a rollout of its own."""
    group_id: str | None = None
    attempt_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
